package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/warning"
)

// Result is the outcome of a request. If the request fails, the Result only has warnings.
type Result struct {
	// Object is the object in the response, as JSON in the version of the request. It lacks the
	// metadata that only a server can set: see [Version.Create] and [Version.Update]. The method
	// UnmarshalJSON of [unstructured.Unstructured] decodes it for [Version.Validate] and the other steps.
	Object json.RawMessage
	// Stored is the object that a write stores, as JSON in the storage version, without the fields
	// that the schema of that version lacks. If a webhook would have to convert the object, and
	// [Convert] is not given, Stored is nil, and Object is the object before the conversion. After
	// a read, Stored is nil.
	Stored json.RawMessage
	// Warnings are the warnings in the response, without duplicates, in the server's order. They
	// are complete, while a server truncates more than 4096 characters to fit in a header.
	Warnings []string
}

// Option configures a request.
type Option func(*request)

// FieldValidation sets how the server reports unknown and duplicate fields. With
// metav1.FieldValidationStrict, which kubectl sends, the request fails. With
// metav1.FieldValidationWarn, the default, the result has a warning for each field. With
// metav1.FieldValidationIgnore, the fields are not reported. Unless the request fails, unknown
// fields are pruned.
func FieldValidation(directive string) Option {
	return func(r *request) { r.fieldValidation = directive }
}

// Namespace sets the namespace in the URL of a create request for a namespaced kind, instead of the
// namespace of the object, or default if it has none. Other requests use the namespace of the old
// object.
func Namespace(name string) Option {
	return func(r *request) { r.namespace = name }
}

// maxRequest is the size of the largest request that the server reads
// (apiserver/pkg/server/config.go, MaxRequestBodyBytes).
const maxRequest = 3 << 20

// request is one request on its way through the server.
type request struct {
	*Version
	fieldValidation string // empty for the server's default
	namespace       string // of a create; empty for the one in the object
	webhook         func(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error)

	warnings []string
	warned   map[string]bool
}

// begin begins a request as the handler of custom resources does. The verb is that of HTTP
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP).
func (v *Version) begin(ctx context.Context, verb string, opts []Option) (context.Context, *request, error) {
	r := &request{Version: v, warned: map[string]bool{}}
	for _, opt := range opts {
		opt(r)
	}
	if err := v.unknown(); err != nil {
		return ctx, r, err
	}
	if !v.spec.Served {
		notFound := apierrors.NewGenericServerResponse(404, verb, v.resource(), "", "", 0, false)
		return ctx, r, fmt.Errorf("schema: version %s of %s is not served: %w", v.name, v.definition.GroupKind(), notFound)
	}
	r.AddWarning("", v.DeprecationWarning())
	return warning.WithWarningRecorder(ctx, r), r, nil
}

// DeprecationWarning returns the warning in each response of a version that is deprecated, or else an
// empty text (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, defaultDeprecationWarning).
func (v *Version) DeprecationWarning() string {
	v.mustExist()
	if !v.spec.Deprecated {
		return ""
	}
	if v.spec.DeprecationWarning != nil {
		return *v.spec.DeprecationWarning
	}
	group, kind := v.definition.crd.Spec.Group, v.definition.crd.Spec.Names.Kind
	text := fmt.Sprintf("%s/%s %s is deprecated", group, v.name, kind)
	for _, better := range v.definition.names[:slices.Index(v.definition.names, v.name)] {
		if spec := v.definition.versions[better].spec; spec.Served && !spec.Deprecated {
			return text + fmt.Sprintf("; use %s/%s %s", group, better, kind)
		}
	}
	return text
}

// AddWarning records a warning once, if it can be sent
// (apiserver/pkg/endpoints/filters/warning.go).
func (r *request) AddWarning(agent, text string) {
	if text == "" || r.warned[text] {
		return
	}
	r.warned[text] = true
	if _, err := utilnet.NewWarningHeader(299, agent, text); err == nil {
		r.warnings = append(r.warnings, text)
	}
}

func (v *Version) gvk() schema.GroupVersionKind { return v.definition.GroupKind().WithVersion(v.name) }

func (v *Version) resource() schema.GroupResource {
	return schema.GroupResource{Group: v.definition.crd.Spec.Group, Resource: v.definition.crd.Spec.Names.Plural}
}

// fail is the result of a request that fails.
func (r *request) fail(err error) (*Result, error) { return &Result{Warnings: r.warnings}, err }

// finish is the result of a request that succeeds: what is stored, and what the server reads back
// from there.
func (r *request) finish(ctx context.Context, u *unstructured.Unstructured) (*Result, error) {
	stores := r.name == r.definition.storage
	if !stores && r.webhook == nil && r.definition.usesWebhook() {
		return r.answer(u, nil)
	}
	if !stores {
		if err := r.convert(ctx, u, r.definition.storage); err != nil {
			return r.fail(err)
		}
	}
	stored, err := json.Marshal(u.Object)
	if err != nil {
		return r.fail(err)
	}
	if err := r.restore(ctx, u); err != nil {
		return r.fail(err)
	}
	return r.answer(u, stored)
}

// answer is the result of a request that succeeds, with the stored object after a write.
func (r *request) answer(u *unstructured.Unstructured, stored []byte) (*Result, error) {
	object, err := json.Marshal(u.Object)
	if err != nil {
		return r.fail(err)
	}
	return &Result{Object: object, Stored: stored, Warnings: r.warnings}, nil
}
