package apiservertest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// front is the handler of a server. Requests that parts of the server send while other parts are
// still being built wait.
type front struct {
	server    http.Handler
	installed chan struct{} // closed when server is there
	// published is closed when OpenAPI has the definitions of the start. The plugin for
	// MutatingAdmissionPolicies asks for OpenAPI at once, and then only every five seconds
	// (apiserver/pkg/admission/plugin/policy/mutating/patch/typeconverter.go, Run).
	published chan struct{}
	fetched   chan struct{} // closed after the first answer about OpenAPI
	once      sync.Once
	faults    *faults
	// internal is the token of the clients that the server itself has.
	internal string
}

func newFront(faults *faults) *front {
	return &front{faults: faults, internal: uuid.NewString(), installed: make(chan struct{}), published: make(chan struct{}), fetched: make(chan struct{})}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gates := []chan struct{}{f.installed}
	if r.URL.Path == "/openapi/v3" {
		gates = append(gates, f.published)
		defer f.once.Do(func() { close(f.fetched) })
	}
	for _, gate := range gates {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	if strings.HasPrefix(r.URL.Path, "/openapi/") {
		// A client may have all of the answer, and close the connection, before the handler returns. The server would log that.
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	if r.Header.Get("Authorization") == "Bearer "+f.internal {
		f.server.ServeHTTP(w, r)
		return
	}
	f.faults.serve(f.server, w, r)
}

// get returns the response to a GET request of the server itself that does not wait.
func (f *front) get(ctx context.Context, path string) *httptest.ResponseRecorder {
	response := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+f.internal)
	f.server.ServeHTTP(response, request)
	return response
}

// ready waits until the server says that it is ready.
func (f *front) ready(life context.Context, failed <-chan error) error {
	err := wait.PollUntilContextCancel(life, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return f.get(ctx, "/readyz").Code == http.StatusOK, nil
	})
	if err != nil {
		return errors.Join(errors.New("the server has ended"), <-failed)
	}
	return nil
}

// publish waits until OpenAPI has the definitions, and a plugin has read it.
func (f *front) publish(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		index := f.get(ctx, "/openapi/v3").Body.String()
		for _, crd := range definitions {
			for _, v := range crd.Spec.Versions {
				if v.Served && !strings.Contains(index, `"apis/`+crd.Spec.Group+"/"+v.Name+`"`) {
					return false, nil
				}
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	close(f.published)
	select {
	case <-f.fetched:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
