package offline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/rest"
)

// hook is an admission webhook. It is of the mutating type, which has all the fields that a
// validating one has.
type hook struct {
	admissionregistrationv1.MutatingWebhook
	mutating          bool
	client            *rest.RESTClient
	namespaces        labels.Selector
	objects           labels.Selector
	conditions        matchconditions.Matcher // nil if there are none
	reviewVersion     string                  // v1 or v1beta1
	ignoreCallFailure bool
}

func (b *builder) newHook(h http.Handler, w admissionregistrationv1.MutatingWebhook, mutating bool) (*hook, error) {
	if h == nil {
		return nil, fmt.Errorf("webhook %s: the handler is nil", w.Name)
	}
	b.setDefaults(&w)
	k := &hook{MutatingWebhook: w, mutating: mutating, ignoreCallFailure: *w.FailurePolicy == admissionregistrationv1.Ignore}
	var errs [4]error
	var service *serviceAddress
	if s := w.ClientConfig.Service; s != nil {
		service = &serviceAddress{s.Namespace, s.Name, s.Path, s.Port}
	}
	k.client, errs[0] = newClient(h, w.ClientConfig.URL, service, w.Name)
	k.namespaces, errs[1] = metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	k.objects, errs[2] = metav1.LabelSelectorAsSelector(w.ObjectSelector)
	if i := slices.IndexFunc(w.AdmissionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" }); i >= 0 {
		k.reviewVersion = w.AdmissionReviewVersions[i]
	} else {
		errs[3] = fmt.Errorf("the admission reviews %q are not supported: there are v1 and v1beta1", w.AdmissionReviewVersions)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("webhook %s: %w", w.Name, err)
	}
	if len(w.MatchConditions) > 0 {
		k.conditions = compileConditions(&w)
	}
	return k, nil
}

// setDefaults sets what a webhook leaves out
// (kubernetes/pkg/apis/admissionregistration/v1/defaults.go), and what [Mutate] adds to that.
func (b *builder) setDefaults(w *admissionregistrationv1.MutatingWebhook) {
	if w.FailurePolicy == nil {
		w.FailurePolicy = new(admissionregistrationv1.Fail)
	}
	if w.MatchPolicy == nil {
		w.MatchPolicy = new(admissionregistrationv1.Equivalent)
	}
	if w.NamespaceSelector == nil {
		w.NamespaceSelector = &metav1.LabelSelector{}
	}
	if w.ObjectSelector == nil {
		w.ObjectSelector = &metav1.LabelSelector{}
	}
	if w.TimeoutSeconds == nil {
		w.TimeoutSeconds = new(int32(10))
	}
	if w.ReinvocationPolicy == nil {
		w.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
	}
	if w.SideEffects == nil {
		w.SideEffects = new(admissionregistrationv1.SideEffectClassNone)
	}
	if len(w.AdmissionReviewVersions) == 0 {
		w.AdmissionReviewVersions = []string{"v1"}
	}
	if len(w.Rules) == 0 {
		w.Rules = []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{b.crd.Spec.Group}, APIVersions: []string{"*"}, Resources: []string{b.crd.Spec.Names.Plural},
			},
		}}
	}
}

// compileConditions is GetCompiledMatcher of
// apiserver/pkg/admission/plugin/webhook/accessors.go. There is nobody to ask for
// authorization.
func compileConditions(w *admissionregistrationv1.MutatingWebhook) matchconditions.Matcher {
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	expressions := make([]cel.ExpressionAccessor, len(w.MatchConditions))
	for i, c := range w.MatchConditions {
		expressions[i] = &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression}
	}
	compiled := compiler.CompileCondition(expressions, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	return matchconditions.NewMatcher(compiled, w.FailurePolicy, "webhook", "admit", w.Name)
}

// invocation is one call of a webhook: the resource and the kind that it is shown.
type invocation struct {
	*hook
	resource runtimeschema.GroupVersionResource
	kind     runtimeschema.GroupVersionKind
}

// matches says whether and how a webhook is called: it is ShouldCallHook of
// apiserver/pkg/admission/plugin/webhook/generic/webhook.go. The versioned attributes are
// for the conditions alone.
func (k *hook) matches(ctx context.Context, attr admission.Attributes, equivalents runtime.EquivalentResourceMapper,
	versioned func(runtimeschema.GroupVersionKind) (*admission.VersionedAttributes, error),
) (*invocation, error) {
	if !k.matchesNamespace(attr) || !k.matchesObject(attr) {
		return nil, nil
	}
	call := k.matchesRules(attr, equivalents)
	if call == nil || k.conditions == nil {
		return call, nil
	}
	v, err := versioned(call.kind)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	result := k.conditions.Match(ctx, v, nil, nil)
	if result.Error != nil {
		return nil, apierrors.NewForbidden(attr.GetResource().GroupResource(), attr.GetName(), result.Error)
	}
	if !result.Matches {
		return nil, nil
	}
	return call, nil
}

// matchesNamespace is MatchNamespaceSelector of the namespace predicate. A namespace has the
// one label that every namespace has.
func (k *hook) matchesNamespace(attr admission.Attributes) bool {
	return attr.GetNamespace() == "" || k.namespaces.Matches(labels.Set{"kubernetes.io/metadata.name": attr.GetNamespace()})
}

// matchesObject is MatchObjectSelector of the object predicate.
func (k *hook) matchesObject(attr admission.Attributes) bool {
	if k.objects.Empty() {
		return true
	}
	for _, o := range []runtime.Object{attr.GetObject(), attr.GetOldObject()} {
		if o == nil {
			continue
		}
		if accessor, err := meta.Accessor(o); err == nil && k.objects.Matches(labels.Set(accessor.GetLabels())) {
			return true
		}
	}
	return false
}

func (k *hook) matchesRules(attr admission.Attributes, equivalents runtime.EquivalentResourceMapper) *invocation {
	for _, rule := range k.Rules {
		if m := (rules.Matcher{Rule: rule, Attr: attr}); m.Matches() {
			return &invocation{hook: k, resource: attr.GetResource(), kind: attr.GetKind()}
		}
	}
	if *k.MatchPolicy != admissionregistrationv1.Equivalent {
		return nil
	}
	for _, rule := range k.Rules {
		for _, other := range equivalents.EquivalentResourcesFor(attr.GetResource(), attr.GetSubresource()) {
			if other == attr.GetResource() {
				continue
			}
			if m := (rules.Matcher{Rule: rule, Attr: otherResource{attr, other}}); m.Matches() {
				return &invocation{hook: k, resource: other, kind: equivalents.KindFor(other, attr.GetSubresource())}
			}
		}
	}
	return nil
}

// otherResource is a request for an equivalent resource.
type otherResource struct {
	admission.Attributes
	resource runtimeschema.GroupVersionResource
}

func (o otherResource) GetResource() runtimeschema.GroupVersionResource { return o.resource }
