package migrate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
)

// transport is a function that answers requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A refused object does not let a controller list all objects again and again.
func TestController_PaceAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boxes()
		d.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		d.Annotations = map[string]string{checkpointAnnotation: `{"storageVersion":"v1","resourceVersion":"12","generation":0,"uid":"","propagationDelay":"1m10s"}`}
		d.Status.StoredVersions = []string{"v1alpha1", "v1"}
		refused := page("", "a")
		refused.Items[0].ResourceVersion = "3"
		lists := 0
		server := inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				reply(w, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": true}})
			case r.Method == http.MethodPatch:
				reply(w, apierrors.NewForbidden(schema.GroupResource{Resource: "boxes"}, "a", errors.New("no")).ErrStatus)
			case strings.HasSuffix(r.URL.Path, "/boxes"):
				lists++
				reply(w, refused)
			default:
				reply(w, d.CustomResourceDefinition)
			}
		})}
		config := &rest.Config{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				return server.RoundTrip(r)
			}
			seconds, err := time.ParseDuration(r.URL.Query().Get("timeoutSeconds") + "s")
			if err != nil {
				t.Error(err)
			}
			body, events := io.Pipe()
			context.AfterFunc(r.Context(), func() { events.CloseWithError(r.Context().Err()) })
			time.AfterFunc(seconds, func() { events.Close() })
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
		})}
		c, err := NewController(config, []string{"boxes.example.com"})
		expect.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		expect.NoError(t, c.Start(ctx))
		if lists < 6 || lists > 16 { // the watch begins again after ten minutes, too
			t.Errorf("listed the objects %d times in an hour, want 6 to 16", lists)
		}
	})
}
