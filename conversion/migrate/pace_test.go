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

// halfway is an API server with a box that is still to be rewritten, and a checkpoint.
type halfway struct {
	lists   int              // of the boxes
	rewrite http.HandlerFunc // answers the patch of the box, and reads of it
	deleted bool             // the definition
}

func (h *halfway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		reply(w, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": true}})
	case strings.Contains(r.URL.Path, "/boxes/"):
		h.rewrite(w, r)
	case strings.HasSuffix(r.URL.Path, "/boxes"):
		h.lists++
		list := page("", "a")
		list.Items[0].ResourceVersion = "3"
		reply(w, list)
	case h.deleted:
		reply(w, apierrors.NewNotFound(definitions.GroupResource(), "boxes.example.com").ErrStatus)
	default:
		d := boxes()
		d.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		d.Annotations = map[string]string{checkpointAnnotation: `{"storageVersion":"v1","resourceVersion":"12","generation":0,"uid":"","propagationDelay":"1m10s"}`}
		d.Status.StoredVersions = []string{"v1alpha1", "v1"}
		reply(w, d.CustomResourceDefinition)
	}
}

// A definition that is deleted meanwhile is reported, and not its objects.
func TestRun_DefinitionDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &halfway{}
		h.rewrite = func(w http.ResponseWriter, r *http.Request) {
			h.deleted = true
			http.NotFound(w, r)
		}
		_, err := Run(t.Context(), &rest.Config{Transport: inMemory{h}}, "boxes.example.com")
		expect.ErrorContains(t, err, `customresourcedefinitions.apiextensions.k8s.io "boxes.example.com" not found`)
		if errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

// A refused object does not let a controller list all objects every minute.
func TestController_PaceAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &halfway{rewrite: func(w http.ResponseWriter, _ *http.Request) {
			reply(w, apierrors.NewForbidden(schema.GroupResource{Resource: "boxes"}, "a", errors.New("no")).ErrStatus)
		}}
		config := &rest.Config{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				return inMemory{h}.RoundTrip(r)
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
		if h.lists < 6 || h.lists > 16 { // the watch begins again after ten minutes, too
			t.Errorf("listed the objects %d times in an hour, want 6 to 16", h.lists)
		}
	})
}
