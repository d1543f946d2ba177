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
type Option func(*options) error

type options struct {
	objects []*unstructured.Unstructured
	stored  []*unstructured.Unstructured
	handler http.Handler
	version serverVersion
	rbac    bool
	audit   func(*audit.Event)
}

func newOptions(opts []Option) (*options, error) {
	o := &options{version: newServerVersion(compatibility.DefaultBuildEffectiveVersion().EmulationVersion())}
	var all []error
	for _, opt := range opts {
		if err := opt(o); err != nil {
			all = append(all, fmt.Errorf("apiservertest: %w", err))
		}
	}
	return o, errors.Join(all...)
}

// Objects adds initial objects: CRDs, webhook configurations, admission policies, namespaces
// and other objects. A conversion webhook needs no object of its own, because it is configured
// in the CRD. Objects are typed or unstructured.
//
// CRDs and objects of built-in kinds are stored before the server starts, so that they take
// effect for the first request. Custom objects are then created by requests, in the given order,
// so that they are defaulted, validated and sent to the webhooks.
func Objects(objects ...runtime.Object) Option {
	return func(o *options) error {
		for _, obj := range objects {
			u, err := toUnstructured(obj)
			if err != nil {
				return err
			}
			o.objects = append(o.objects, u)
		}
		return nil
	}
}

// Manifests adds initial objects from YAML or JSON; see [Objects]. An argument may have several
// documents. Each object needs apiVersion, kind and metadata.name.
func Manifests(texts ...[]byte) Option {
	return func(o *options) error {
		for i, text := range texts {
			reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
			for {
				u := &unstructured.Unstructured{}
				err := reader.Decode(&u.Object)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return fmt.Errorf("manifest %d: %w", i, err)
				}
				if len(u.Object) == 0 {
					continue
				}
				if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
					return fmt.Errorf("manifest %d: an object needs apiVersion, kind and metadata.name, got %q, %q and %q", i, u.GetAPIVersion(), u.GetKind(), u.GetName())
				}
				o.objects = append(o.objects, u)
			}
		}
		return nil
	}
}

// Handler sets a handler in this process that answers all webhook requests, for any Service or URL.
// A second handler is an error. Without a handler, webhooks are called over the network, at their
// URL or at the external name of their Service, and [New] returns an error for an initial object that
// has a webhook with a Service.
func Handler(h http.Handler) Option {
	return func(o *options) error {
		if o.handler != nil {
			return errors.New("Handler: there is another handler; join both with an http.ServeMux")
		}
		o.handler = h
		return nil
	}
}

// Webhooks adds the manifests of a *registration.Webhooks, and sets it as the handler, as
// [Manifests] and [Handler] do.
func Webhooks(hooks interface {
	http.Handler
	Manifests(caBundle []byte) ([]byte, error)
}) Option {
	return func(o *options) error {
		text, err := hooks.Manifests(nil)
		if err != nil {
			return err
		}
		return errors.Join(Manifests(text)(o), Handler(hooks)(o))
	}
}

// Audit calls f with an audit event when a request of a client ends, at the level Metadata. The annotations include
// those that policies publish. The event is only valid until f returns, and f must be safe for concurrent use.
func Audit(f func(*audit.Event)) Option {
	return func(o *options) error {
		o.audit = f
		return nil
	}
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
