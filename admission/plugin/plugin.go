package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/review"
	"github.com/crdkit/crdkit/internal/served"
)

// decider is implemented by the handlers of admission.NewHandler.
type decider interface {
	Wants(kind schema.GroupKind, subresource string, mutate bool) bool
	Decide(ctx context.Context, request *admissionv1.AdmissionRequest, mutate bool) (*admissionv1.AdmissionResponse, []byte, error)
}

// Plugin is an admission plug-in that makes the decisions of a handler of package admission. A
// Plugin must not be copied.
type Plugin struct {
	name    string
	decider decider
}

var (
	_ apiadmission.MutationInterface       = &Plugin{}
	_ apiadmission.ValidationInterface     = &Plugin{}
	_ apiadmission.InitializationValidator = &Plugin{}
)

// New returns a plug-in without a handler. The name is used in flags such as
// --disable-admission-plugins. In lower case, it is the prefix of audit annotations.
func New(name string) *Plugin { return &Plugin{name: name} }

// Register adds the plug-in to the plug-ins of a server, such as the field Plugins of
// [k8s.io/apiserver/pkg/server/options.AdmissionOptions]. Also add the name of the plug-in to
// the field RecommendedPluginOrder.
func (p *Plugin) Register(plugins *apiadmission.Plugins) {
	plugins.Register(p.name, func(io.Reader) (apiadmission.Interface, error) { return p, nil })
}

// Handle sets the handler before the server starts, for example in an initializer of plug-ins if
// your functions need the server's own client. Handle panics unless the handler comes from
// admission.NewHandler and is not wrapped by another handler.
func (p *Plugin) Handle(h http.Handler) {
	var ok bool
	if p.decider, ok = served.Inner(h).(decider); !ok {
		panic(fmt.Errorf("plugin: %s: the handler is a %T, expected one of admission.NewHandler", p.name, h))
	}
}

// ValidateInitialization returns an error if [Plugin.Handle] has not been called.
func (p *Plugin) ValidateInitialization() error {
	if p.decider == nil {
		return fmt.Errorf("plugin: %s: the handler is missing: call Handle", p.name)
	}
	return nil
}

// Handles returns true for all operations, because the handler selects the functions.
func (p *Plugin) Handles(apiadmission.Operation) bool { return true }

// Admit calls the mutating functions of the handler, and updates the object of the request. It
// returns an *apierrors.StatusError if a function denies the request, or if the request is
// undecided.
func (p *Plugin) Admit(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if a.GetObject() == nil {
		return nil // nothing to change: a deletion
	}
	mutated, err := p.decide(ctx, a, o, true)
	if err != nil || mutated == nil {
		return err
	}
	obj, err := o.GetObjectCreater().New(a.GetKind())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := json.Unmarshal(mutated, obj); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("%s: the changed object: %w", p.name, err))
	}
	// As apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go does.
	o.GetObjectDefaulter().Default(obj)
	return o.GetObjectConvertor().Convert(obj, a.GetObject(), nil)
}

// Validate calls the validating functions of the handler. It returns an *apierrors.StatusError
// if a function denies the request, or if the request is undecided.
func (p *Plugin) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	if a.GetOperation() == apiadmission.Delete && a.GetOldObject() == nil {
		return nil // a collection, whose objects come one by one
	}
	_, err := p.decide(ctx, a, o, false)
	return err
}

// decide returns the changed object, or nil.
func (p *Plugin) decide(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces, mutate bool) ([]byte, error) {
	if !p.decider.Wants(a.GetKind().GroupKind(), a.GetSubresource(), mutate) {
		return nil, nil
	}
	request, err := newRequest(a, o)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("%s: %w", p.name, err))
	}
	response, mutated, err := p.decider.Decide(ctx, request, mutate)
	if err != nil {
		return nil, &apierrors.StatusError{ErrStatus: review.Status(err)}
	}
	for key, value := range response.AuditAnnotations {
		// The first value stays when the server calls the functions again, as it does for webhooks
		// (apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go).
		if err := a.AddAnnotation(strings.ToLower(p.name)+"/"+key, value); err != nil {
			klog.FromContext(ctx).Info("An audit annotation is left out", "err", logtext.Error(err), "plugin", p.name)
		}
	}
	for _, w := range response.Warnings {
		warning.AddWarning(ctx, "", w)
	}
	if !response.Allowed {
		return nil, &apierrors.StatusError{ErrStatus: *response.Result}
	}
	return mutated, nil
}

// newRequest returns the request as a webhook would get it.
func newRequest(a apiadmission.Attributes, o apiadmission.ObjectInterfaces) (*admissionv1.AdmissionRequest, error) {
	request := cel.CreateAdmissionRequest(a, metav1.GroupVersionResource(a.GetResource()), metav1.GroupVersionKind(a.GetKind()))
	request.UID = uuid.NewUUID()
	versioned, err := apiadmission.NewVersionedAttributes(a, a.GetKind(), o)
	if err != nil {
		return nil, err
	}
	for into, obj := range map[*[]byte]runtime.Object{&request.Object.Raw: versioned.VersionedObject.Object(), &request.OldObject.Raw: versioned.VersionedOldObject.Object()} {
		if obj == nil {
			continue
		}
		if *into, err = json.Marshal(obj); err != nil {
			return nil, err
		}
	}
	return request, nil
}
