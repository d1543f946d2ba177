package webhook

import (
	"context"
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// responseWriter is the ResponseWriter of a handler. When the server stops, it asks the client to
// close the connection.
type responseWriter struct {
	http.ResponseWriter
	stopping context.Context
}

// begin completes the header before it is sent. Later, it has no effect.
func (a *responseWriter) begin() {
	if a.stopping.Err() != nil {
		// In HTTP/1.1, this tells the client to stop sending. In HTTP/2, net/http makes a
		// GOAWAY of it, after which a client repeats what was not answered.
		a.Header().Set("Connection", "close")
	}
}

func (a *responseWriter) WriteHeader(code int) {
	a.begin()
	a.ResponseWriter.WriteHeader(code)
}

func (a *responseWriter) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// BaseContextNeverEnds marks the response writer for internal/review, which would otherwise have to tell
// the end of the base context from a client that disconnects.
func (*responseWriter) BaseContextNeverEnds() {}

// Unwrap supports http.ResponseController.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// writeStatus writes a Status like the API server does, so that the user sees its message
// (client-go/rest/request.go).
func writeStatus(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // an error means that the client has gone
}
