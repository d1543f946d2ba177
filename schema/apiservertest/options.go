package apiservertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes/scheme"
)

// Option configures a server.
type Option func(*options)

type options struct {
	objects []*unstructured.Unstructured
	stored  []*unstructured.Unstructured
	handler http.Handler
	version serverVersion
	rbac    bool
	// uncached is set by [NoWatchCache].
	uncached bool
	audit    func(*audit.Event)
	errs     []error
}

func (o *options) errorf(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("apiservertest: "+format, args...))
}

func newOptions(opts []Option) (*options, error) {
	o := &options{version: newServerVersion(compatibility.DefaultBuildEffectiveVersion().EmulationVersion())}
	for _, opt := range opts {
		opt(o)
	}
	return o, errors.Join(o.errs...)
}

// Objects adds initial objects: CRDs, webhook configurations, admission policies, namespaces
// and other objects. A conversion webhook needs no object of its own, because it is configured
// in the CRD. Objects are typed or unstructured.
//
// CRDs and objects of built-in kinds are stored before the server starts, so that they take
// effect for the first request. Custom objects are then created by requests, in the given order,
// so that they are defaulted, validated and sent to the webhooks.
func Objects(objects ...runtime.Object) Option {
	return func(o *options) {
		for _, obj := range objects {
			u, err := toUnstructured(obj)
			if err != nil {
				o.errorf("%w", err)
				continue
			}
			o.objects = append(o.objects, u)
		}
	}
}

// Manifests adds initial objects from YAML or JSON; see [Objects]. An argument may have several
// documents. Each object needs apiVersion, kind and metadata.name.
func Manifests(texts ...[]byte) Option {
	return func(o *options) {
		for i, text := range texts {
			objects, err := parse(text)
			if err != nil {
				o.errorf("manifest %d: %w", i, err)
			}
			o.objects = append(o.objects, objects...)
		}
	}
}

// parse returns the objects of YAML or JSON documents. Large integers stay as they are.
func parse(text []byte) (objects []*unstructured.Unstructured, err error) {
	for reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var document runtime.RawExtension
		err := reader.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err == nil && len(document.Raw) == 0:
			continue
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(document.Raw)
		}
		if err == nil && (u.GetAPIVersion() == "" || u.GetName() == "") {
			err = fmt.Errorf("an object needs apiVersion, kind and metadata.name, got %q, %q and %q", u.GetAPIVersion(), u.GetKind(), u.GetName())
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, u)
	}
}

// Handler sets a handler in this process that answers all webhook requests, for any Service or URL.
// A second handler is an error. Without a handler, webhooks are called over the network, at their
// URL or at the external name of their Service, and [New] returns an error for an initial object that
// has a webhook with a Service.
func Handler(h http.Handler) Option {
	return func(o *options) {
		if o.handler != nil {
			o.errorf("Handler: there is another handler; join both with an http.ServeMux")
		}
		o.handler = h
	}
}

// Webhooks adds the manifests of a *registration.Webhooks, and sets it as the handler, as
// [Manifests] and [Handler] do.
func Webhooks(hooks interface {
	http.Handler
	Manifests(caBundle []byte) ([]byte, error)
}) Option {
	return func(o *options) {
		text, err := hooks.Manifests(nil)
		if err != nil {
			o.errorf("%w", err)
		}
		Manifests(text)(o)
		Handler(hooks)(o)
	}
}

// Audit calls f with an audit event when a request of a client ends, at the level Metadata. The annotations include
// those that policies publish. The event is only valid until f returns, and f must be safe for concurrent use.
func Audit(f func(*audit.Event)) Option {
	return func(o *options) { o.audit = f }
}

// NoWatchCache serves the objects of CRDs from the store, as kube-apiserver does with --watch-cache=false. It takes a third of the
// memory, and less time, if a test sends thousands of writes and hardly watches.
func NoWatchCache() Option {
	return func(o *options) { o.uncached = true }
}

// toUnstructured accepts typed objects of scheme.Scheme, which may have types of the program too, CRDs,
// and any object that has its apiVersion and kind.
func toUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() != "" && u.GetAPIVersion() != "" {
		return u, nil
	}
	if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		u.SetGroupVersionKind(definitionKind)
		return u, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return nil, fmt.Errorf("%T %q: apiVersion and kind are missing", obj, u.GetName())
	}
	u.SetGroupVersionKind(kinds[0])
	return u, nil
}
