package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// RequestOption changes how a request is handled.
type RequestOption func(*request)

// DryRun lets a request do everything but store what it has done.
func DryRun() RequestOption {
	return func(r *request) { r.dryRun = true }
}

// FieldValidation says what becomes of fields that are unknown, or there twice: see
// [schema.FieldValidation].
func FieldValidation(directive string) RequestOption {
	return func(r *request) { r.directive = directive }
}

// request is one request to a resource.
type request struct {
	*Resource
	requested   string // the version of the request
	operation   admission.Operation
	subresource string
	namespace   string
	directive   string
	dryRun      bool
	warnings    []string
}

// begin begins a request. The error says that the version is not there or not served.
func (r *Resource) begin(version, verb string, operation admission.Operation, opts []RequestOption) (*request, error) {
	req := &request{Resource: r, requested: version, operation: operation}
	for _, opt := range opts {
		opt(req)
	}
	deprecation, err := pipeline.Serve(r.crd, version, verb)
	req.warn(deprecation)
	var status apierrors.APIStatus
	if err != nil && !errors.As(err, &status) {
		err = fmt.Errorf("%w: %w", errHere, err)
	}
	return req, err
}

// options are those of the request, as the webhooks see them.
func (r *request) options() runtime.Object {
	typeMeta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: kind}
	}
	var dryRun []string
	if r.dryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	switch r.operation {
	case admission.Create:
		return &metav1.CreateOptions{TypeMeta: typeMeta("CreateOptions"), DryRun: dryRun, FieldValidation: r.directive}
	case admission.Update:
		return &metav1.UpdateOptions{TypeMeta: typeMeta("UpdateOptions"), DryRun: dryRun, FieldValidation: r.directive}
	default:
		return &metav1.DeleteOptions{TypeMeta: typeMeta("DeleteOptions"), DryRun: dryRun}
	}
}

// staged is the pipeline until validating admission, with the mutating webhooks in it.
func (r *request) staged(mutate func(ctx context.Context, object *unstructured.Unstructured) error) schema.Option {
	return func(s *pipeline.Settings) {
		s.Staged, s.FieldValidation, s.DryRun = true, r.directive, r.dryRun
		s.Mutate = func(ctx context.Context, object map[string]any) error {
			u := &unstructured.Unstructured{Object: object}
			err := mutate(ctx, u)
			replace(object, u.Object)
			return err
		}
	}
}

// took takes over what the pipeline says of a request, and returns its object.
func (r *request) took(out *schema.Result, err error) (*unstructured.Unstructured, error) {
	r.warn(out.Warnings...)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(out.Object)
}

// warn adds warnings, each once (apiserver/pkg/endpoints/filters/warning.go).
func (r *request) warn(warnings ...string) {
	for _, w := range warnings {
		if _, err := utilnet.NewWarningHeader(299, "", w); err == nil && w != "" && !slices.Contains(r.warnings, w) {
			r.warnings = append(r.warnings, w)
		}
	}
}

// AddWarning records what a webhook warns of outside the pipeline.
func (r *request) AddWarning(_, text string) { r.warn(text) }

var _ warning.Recorder = &request{}

// admitted is validating admission, and in a deletion the mutating webhooks before that
// (apiserver/pkg/registry/rest/delete.go, AdmissionToValidateObjectDeleteFunc).
func (r *request) admitted(ctx context.Context, attr admission.Attributes) error {
	ctx = warning.WithWarningRecorder(ctx, r)
	if r.operation == admission.Delete {
		if err := r.mutate(ctx, attr); err != nil {
			return err
		}
	}
	return r.validate(ctx, attr)
}

// fail is the result of a request that fails. What is no error of the API is one that the
// server did not mean to return (apiserver/pkg/endpoints/handlers/responsewriters/status.go,
// ErrorToAPIStatus), except that of a version which is not there or not served.
func (r *request) fail(err error) (*schema.Result, error) {
	return &schema.Result{Warnings: r.warnings}, serverError(err)
}

func serverError(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) || errors.Is(err, errHere) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: err.Error(),
	}}
}

// errHere marks errors of the caller, which no server would return.
var errHere = errors.New("offline")
