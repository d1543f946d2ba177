package schema

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/handlers/finisher"
	"k8s.io/apiserver/pkg/warning"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Result is the outcome of a request. If the request fails, it has the warnings alone.
type Result struct {
	// Object is what the server answers, to a dry run too: the object in the version of
	// the request, read back from what is stored, in JSON. Metadata that only a server
	// knows are not there: see [Version.Create] and [Version.Update].
	Object json.RawMessage
	// Stored is what a write leaves in storage: the object in the storage version, in JSON.
	// Where that is not the version of the request, it has been converted and has lost what
	// the schema of the storage version does not have. If a webhook would have to convert
	// it, and there is none here, Stored is nil and Object is as it was before that. (Package
	// offline has one.) A read has no Stored.
	Stored json.RawMessage
	// Warnings are those of the response, each once, in the server's order. (Where they
	// have more than 4096 characters in all, the server cuts them short to fit in a
	// header.)
	Warnings []string
	// Deleted reports whether the server deletes the object, because its deletion was waiting
	// for the finalizers that are gone now.
	Deleted bool
}

// Unstructured decodes Object in the form that [Version.Validate], [Version.Table] and the
// other steps take: whole numbers are int64. (For an object of a Go type, decode Object
// with encoding/json.)
func (r *Result) Unstructured() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(r.Object)
}

// request is one request on its way through the server.
type request struct {
	*Version
	pipeline.Settings

	mu       sync.Mutex
	warnings []string
	warned   map[string]bool
}

// begin begins a request as the handler of custom resources does
// (customresource_handler.go, ServeHTTP). The verb is that of HTTP.
func (v *Version) begin(ctx context.Context, verb string, opts []Option) (context.Context, *request, error) {
	r := &request{Version: v}
	for _, opt := range opts {
		opt(&r.Settings)
	}
	deprecation, err := pipeline.Serve(v.definition.crd, v.name, verb)
	if err != nil {
		return ctx, r, err
	}
	r.AddWarning("", deprecation)
	return warning.WithWarningRecorder(ctx, r), r, nil
}

// checkOptions is what the handlers do with a request's options.
func (r *request) checkOptions(kind string) error {
	errs := metav1validation.ValidateFieldValidation(nil, r.FieldValidation)
	if len(errs) == 0 {
		return nil
	}
	if kind == "CreateOptions" {
		errs = metav1validation.ValidateCreateOptions(&metav1.CreateOptions{FieldValidation: r.FieldValidation})
	} else {
		errs = metav1validation.ValidateUpdateOptions(&metav1.UpdateOptions{FieldValidation: r.FieldValidation})
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// AddWarning records a warning once, if it can be sent
// (apiserver/pkg/endpoints/filters/warning.go).
func (r *request) AddWarning(agent, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == "" || r.warned[text] {
		return
	}
	if r.warned == nil {
		r.warned = map[string]bool{}
	}
	r.warned[text] = true
	if _, err := utilnet.NewWarningHeader(299, agent, text); err == nil {
		r.warnings = append(r.warnings, text)
	}
}

var _ warning.Recorder = (*request)(nil)

func (v *Version) gvk() schema.GroupVersionKind { return v.definition.GroupKind().WithVersion(v.name) }

func (v *Version) resource() schema.GroupResource {
	return schema.GroupResource{Group: v.definition.crd.Spec.Group, Resource: v.definition.crd.Spec.Names.Plural}
}

// fail is the result of a request that fails.
func (r *request) fail(err error) (*Result, error) { return r.result(), err }

// result is one with the warnings so far: a validation that took too long may add more.
func (r *request) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Result{Warnings: slices.Clone(r.warnings)}
}

// finish is the result of a request that succeeds: what is stored, and what the server reads back
// from there.
func (r *request) finish(u *unstructured.Unstructured) (*Result, error) {
	out := r.result()
	var err error
	stores := r.name == r.definition.storage
	if !r.Staged && (stores || r.definition.crd.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter) {
		if !stores {
			if err := r.definition.convert(u, r.definition.storage); err != nil {
				return r.fail(err)
			}
		}
		if out.Stored, err = json.Marshal(u.Object); err != nil {
			return r.fail(err)
		}
		if err := r.restore(u); err != nil {
			return r.fail(err)
		}
	}
	if out.Object, err = json.Marshal(u.Object); err != nil {
		return r.fail(err)
	}
	return out, nil
}

// inTime works until the context ends, or the time of a write is over; the error is the
// server's Timeout then. Some of the server's validation takes quadratic time, and does not
// look at a context: like the server, inTime leaves it alone.
func inTime(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pipeline.MaxTime)
	defer cancel()
	_, err := finisher.FinishRequest(ctx, func() (runtime.Object, error) { return nil, work(ctx) })
	return err
}
