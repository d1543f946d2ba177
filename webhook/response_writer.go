package webhook

import (
	"context"
	"encoding/json"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is the ResponseWriter of a handler. When the server stops, it asks the client to
// close the connection. If the body exceeded the memory limit, it replaces the response.
type answer struct {
	http.ResponseWriter
	stopping context.Context
	body     *body // or nil

	began    bool
	replaced bool
}

// begin completes the header before it is sent.
func (a *answer) begin() {
	if a.began {
		return
	}
	a.began = true
	a.replaced = a.body != nil && a.body.refused.Load()
	if a.replaced {
		clear(a.Header())
	}
	if a.stopping.Err() != nil {
		// In HTTP/1.1, this tells the client to stop sending. In HTTP/2, net/http makes a
		// GOAWAY of it, after which a client repeats what was not answered.
		a.Header().Set("Connection", "close")
	}
	if a.replaced {
		a.Header().Set("Retry-After", "1")
		writeStatus(a.ResponseWriter, apierrors.NewServiceUnavailable("the requests exceed the memory limit of the webhook: try again"))
	}
}

func (a *answer) WriteHeader(code int) {
	a.begin()
	if !a.replaced {
		a.ResponseWriter.WriteHeader(code)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	if a.replaced {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap supports http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// writeStatus writes a Status like the API server does, so that the user sees its message
// (client-go/rest/request.go).
func writeStatus(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // an error means that the client has gone
}
