package apiservertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
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
	if r.Header.Get("Authorization") == "Bearer "+f.internal {
		f.server.ServeHTTP(w, r)
		return
	}
	f.faults.serve(f.server, w, r)
}

// ready waits until the server says that it is ready.
func (f *front) ready(life context.Context, failed <-chan error) error {
	client, err := f.client(life)
	if err != nil {
		return err
	}
	for {
		if client.RESTClient().Get().AbsPath("/readyz").Do(life).Error() == nil {
			return nil
		}
		select {
		case err := <-failed:
			return errors.Join(errors.New("the server has ended"), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// publish waits until OpenAPI has the definitions, and a plugin has read it.
func (f *front) publish(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	client, err := f.client(ctx)
	if err != nil {
		return err
	}
	for {
		err := published(ctx, client, definitions)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	close(f.published)
	select {
	case <-f.fetched:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// client returns a client that does not wait.
func (f *front) client(done context.Context) (*discovery.DiscoveryClient, error) {
	return discovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://apiservertest", Transport: transport{f.server, done}, QPS: -1})
}

// published returns an error if OpenAPI lacks a version of a CRD.
func published(ctx context.Context, client discovery.DiscoveryInterface, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	text, err := client.RESTClient().Get().AbsPath("/openapi/v3").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var all struct{ Paths map[string]any }
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, crd := range definitions {
		for _, v := range crd.Spec.Versions {
			path := "apis/" + crd.Spec.Group + "/" + v.Name
			if _, ok := all.Paths[path]; v.Served && !ok {
				return fmt.Errorf("OpenAPI does not have %s yet", path)
			}
		}
	}
	return nil
}
