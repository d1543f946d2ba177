package registration

import (
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/served"
)

type hookKind string

const (
	mutating   hookKind = "Mutating"
	validating hookKind = "Validating"
)

// hook is an admission webhook.
type hook struct {
	admissionregistrationv1.MutatingWebhook // a ValidatingWebhook has the same fields but one
	kind                                    hookKind
	path                                    string
	handler                                 http.Handler
}

func (h *hook) String() string { return string(h.kind) + " " + h.Name }

// Mutating adds a mutating admission webhook, and the path on which its handler is served.
// The name has at least three segments, such as default.pizzas.example.com, and is unique
// among the mutating webhooks. The handler comes from package admission; for another
// handler, set the rules.
//
// The rules are generated from the handler (see "Rules" in the package documentation), and the
// other fields have the defaults of admissionregistration.k8s.io/v1. Pass functions to change the
// fields:
//
//	func(w *admissionregistrationv1.MutatingWebhook) {
//		w.FailurePolicy = new(admissionregistrationv1.Ignore)
//	}
//
// Rules that a function sets replace the generated rules. Changes of the name and of the
// clientConfig are ignored.
//
// See "Namespaces" in the package documentation for the default of the namespaceSelector.
//
// [New] returns an error if none of the handler's functions mutates objects.
func Mutating(
	name, path string, h http.Handler, changes ...func(*admissionregistrationv1.MutatingWebhook),
) Option {
	return func(s *settings) {
		hook := s.addHook(mutating, name, path, h)
		hook.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
		apply(hook, changes)
	}
}

// Validating adds a validating admission webhook, like [Mutating]. [New] returns an error
// if one of the handler's functions mutates objects.
func Validating(
	name, path string, h http.Handler, changes ...func(*admissionregistrationv1.ValidatingWebhook),
) Option {
	return func(s *settings) { apply(s.addHook(validating, name, path, h), changes) }
}

func (s *settings) addHook(kind hookKind, name, path string, handler http.Handler) *hook {
	h := &hook{kind: kind, path: path, handler: handler, MutatingWebhook: admissionregistrationv1.MutatingWebhook{
		Name:           name,
		FailurePolicy:  new(admissionregistrationv1.Fail),
		MatchPolicy:    new(admissionregistrationv1.Equivalent),
		SideEffects:    new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(10)),
		ObjectSelector: &metav1.LabelSelector{},
	}}
	for _, other := range s.hooks {
		if other.kind == kind && other.Name == name {
			s.errorf("%s: name given twice", h)
		}
	}
	s.hooks = append(s.hooks, h)
	return h
}

// apply calls functions that change a webhook, which they get as its own type.
func apply[T any](h *hook, changes []func(*T)) {
	name := h.Name
	var webhook T
	copyFields(&webhook, &h.MutatingWebhook)
	for _, change := range changes {
		change(&webhook)
	}
	h.MutatingWebhook = admissionregistrationv1.MutatingWebhook{}
	copyFields(&h.MutatingWebhook, &webhook)
	h.Name = name
	for i := range h.Rules {
		if h.Rules[i].Scope == nil {
			h.Rules[i].Scope = new(admissionregistrationv1.AllScopes) // the API server's default
		}
	}
}

// copyFields copies the fields by their names in JSON, which have the same types in both structs.
func copyFields(to, from any) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	utilruntime.Must(err)
	utilruntime.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(fields, to))
}

// complete sets the fields that depend on the whole declaration.
func (s *settings) complete(h *hook) {
	if errs := validation.IsFullyQualifiedName(field.NewPath("name"), h.Name); len(errs) > 0 {
		s.errorf("%s: %w", h, errs.ToAggregate())
	}
	s.completeRules(h)
	if h.AdmissionReviewVersions == nil {
		h.AdmissionReviewVersions = s.reviewVersions
	}
	if h.NamespaceSelector == nil {
		h.NamespaceSelector = s.defaultNamespaces(h.Rules)
	}
}

// defaultNamespaces returns the default selector of a webhook with these rules.
func (s *settings) defaultNamespaces(rules []admissionregistrationv1.RuleWithOperations) *metav1.LabelSelector {
	namespaced := func(r admissionregistrationv1.RuleWithOperations) bool {
		return *r.Scope != admissionregistrationv1.ClusterScope
	}
	if !slices.ContainsFunc(rules, namespaced) {
		return &metav1.LabelSelector{}
	}
	excluded := []string{metav1.NamespaceSystem}
	if s.ownNamespace != "" && s.ownNamespace != metav1.NamespaceSystem {
		excluded = append(excluded, s.ownNamespace)
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: excluded,
	}}}
}

// completeRules generates the rules from the handler, unless they are set.
func (s *settings) completeRules(h *hook) {
	known, ok := served.By(h.handler)
	if !ok || len(known.Functions) == 0 {
		if ok || len(h.Rules) == 0 {
			s.errorf("%s: handler without functions, expected one of admission.NewHandler: or set Rules", h)
		}
		return
	}
	mutates := slices.ContainsFunc(known.Functions, func(f served.Function) bool { return f.Mutates })
	switch {
	case mutates && h.kind == validating:
		s.errorf("%s: handler with functions of Mutate, but the API server refuses a patch from a validating webhook: register it with Mutating", h)
	case !mutates && h.kind == mutating:
		s.errorf("%s: handler without functions of Mutate: register it with Validating", h)
	}
	if len(h.Rules) == 0 {
		exact := h.MatchPolicy != nil && *h.MatchPolicy == admissionregistrationv1.Exact
		h.Rules = s.rules(h, known.Functions, exact)
	}
}
