package offline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// RequestOption changes how a request is handled.
type RequestOption func(*request)

// DryRun lets a request do everything, except that nothing is stored.
func DryRun() RequestOption {
	return func(r *request) { r.dryRun = true }
}

// FieldValidation says what becomes of fields that are unknown, or there twice: see
// [schema.FieldValidation]. A deletion ignores it.
func FieldValidation(directive string) RequestOption {
	return func(r *request) { r.directive = directive }
}

// As says who sends this request: the userInfo of its reviews. Without it, that is the user
// of the Resource: see [User].
func As(user authenticationv1.UserInfo) RequestOption {
	return func(r *request) { r.user = user }
}

// request is one request to a resource.
type request struct {
	resource    *Resource
	version     string // in the URL
	subresource string
	namespace   string
	operation   admission.Operation // empty for reads
	user        authenticationv1.UserInfo
	directive   string
	dryRun      bool
	warnings    []string
	// resourceVersion is that of an object to be created. No object may have one, but a dry
	// run does not come to where the server looks, and answers with it.
	resourceVersion string
}

// serve handles a request. The verb is that of HTTP.
func (r *Resource) serve(ctx context.Context, req *request, verb string, opts []RequestOption, handle func(ctx context.Context) (*schema.Result, error)) (*schema.Result, error) {
	req.resource, req.user = r, r.user
	for _, opt := range opts {
		opt(req)
	}
	deprecation, err := pipeline.Serve(r.crd, req.version, verb)
	if err != nil {
		return req.fail(ownError(err))
	}
	if req.namespace != "" && !r.namespaced() {
		missing := apierrors.NewGenericServerResponse(404, verb, r.groupResource(), "", "", 0, false)
		return req.fail(ownError(fmt.Errorf("%s are in no namespace, and the request is for %s: %w", r.crd.Spec.Names.Plural, req.namespace, missing)))
	}
	req.warn(deprecation)
	ctx, cancel := context.WithTimeout(warning.WithWarningRecorder(ctx, req), pipeline.MaxTime)
	defer cancel()
	out, err := handle(ctx)
	if err != nil && ctx.Err() != nil {
		err = pipeline.Timeout(ctx.Err())
	}
	if err != nil {
		return req.fail(err)
	}
	return out, nil
}

// key is where the object of a request is. Without a namespace, that is default.
func (r *request) key(name string) (types.NamespacedName, error) {
	if r.resource.namespaced() && r.namespace == "" {
		r.namespace = metav1.NamespaceDefault
	}
	key := types.NamespacedName{Namespace: r.namespace, Name: name}
	if name == "" {
		return key, ownError(errors.New("the request does not name an object"))
	}
	return key, nil
}

// retry does what f does, again and again while another request changes the object
// meanwhile. A server stops when the time is over, and not before. The limit here is far
// above what many writers at the same time need.
func (r *request) retry(ctx context.Context, key types.NamespacedName, f func() (out *schema.Result, again bool, err error)) (*schema.Result, error) {
	const most = 500
	for range most {
		out, again, err := f()
		if err != nil || !again {
			return out, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, ownError(fmt.Errorf("%s %q has changed during each of %d attempts: a webhook may write the very object that it is asked about", r.resource.groupResource(), key, most))
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

// untilValidation lets package schema do a write until validating admission, with the
// mutating webhooks in it.
func (r *request) untilValidation(mutate func(ctx context.Context, object *unstructured.Unstructured) error) schema.Option {
	return func(s *pipeline.Settings) {
		s.Staged, s.FieldValidation, s.DryRun = true, r.directive, r.dryRun
		s.Mutate = func(ctx context.Context, object map[string]any) error {
			u := &unstructured.Unstructured{Object: object}
			err := mutate(ctx, u)
			by := maps.Clone(u.Object)
			clear(object)
			maps.Copy(object, by)
			return serverError(err)
		}
	}
}

// prepared is the object that package schema has prepared for validating admission. Its
// warnings are those of the request.
func (r *request) prepared(out *schema.Result, err error) (*unstructured.Unstructured, error) {
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

// AddWarning records what a webhook warns of outside package schema.
func (r *request) AddWarning(_, text string) { r.warn(text) }

var _ warning.Recorder = &request{}

// fail is the result of a request that fails.
func (r *request) fail(err error) (*schema.Result, error) {
	return &schema.Result{Warnings: r.warnings}, serverError(err)
}

// serverError makes of an error that is none of the API one that the server did not mean to
// return (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus). It
// leaves alone what no server would return.
func serverError(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) || errors.Is(err, errOwn) {
		return err
	}
	return pipeline.InternalError(err.Error())
}

// errOwn is in the errors that no server would return.
var errOwn = errors.New("offline")

func ownError(err error) error { return fmt.Errorf("%w: %w", errOwn, err) }
