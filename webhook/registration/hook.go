package registration

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/handlerinfo"
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
	faults                                  []error
}

func (h *hook) String() string { return string(h.kind) + " " + h.Name }

func (h *hook) fault(format string, args ...any) {
	h.faults = append(h.faults, fmt.Errorf(format, args...))
}

// WebhookOption changes what the API server is told about one admission webhook. The
// defaults are those of admissionregistration.k8s.io/v1, and as given with each option. The API
// server checks the values when the manifests are applied.
type WebhookOption func(*hook)

// Mutating adds a mutating admission webhook: a name with at least three segments, unique
// among the mutating ones, such as default.pizzas.example.com; a path; and the handler of
// package admission that is served there. Its rules are made from the handler: see [Rules].
func Mutating(name, path string, h http.Handler, opts ...WebhookOption) Option {
	return addHook(mutating, name, path, h, opts)
}

// Validating adds a validating admission webhook, like [Mutating].
func Validating(name, path string, h http.Handler, opts ...WebhookOption) Option {
	return addHook(validating, name, path, h, opts)
}

func addHook(kind hookKind, name, path string, handler http.Handler, opts []WebhookOption) Option {
	return func(s *settings) {
		h := &hook{kind: kind, path: path, handler: handler, MutatingWebhook: admissionregistrationv1.MutatingWebhook{
			Name:           name,
			FailurePolicy:  new(admissionregistrationv1.Fail),
			MatchPolicy:    new(admissionregistrationv1.Equivalent),
			SideEffects:    new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(10)),
			ObjectSelector: &metav1.LabelSelector{},
		}}
		if kind == mutating {
			h.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
		}
		for _, opt := range opts {
			if opt == nil {
				h.fault("an option is nil")
				continue
			}
			opt(h)
		}
		for _, other := range s.hooks {
			if other.kind == kind && other.Name == name {
				h.fault("the name is given twice")
			}
		}
		s.hooks = append(s.hooks, h)
	}
}

// Rules says for which requests the webhook is called, instead of the rules that are made
// from its handler: for a handler that is not from this library, and for functions of every
// kind. A scope that is not given is "*".
//
// They replace all rules that would be made from the handler. So the functions of a
// subresource that need Rules, such as those of scale, need a handler and a webhook of their
// own: then the rules of the resource itself are still made from its handler.
//
// The resources of
// admissionregistration.k8s.io themselves, such as validatingwebhookconfigurations, are never
// sent to webhooks, whatever the rules say
// (apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go).
func Rules(rules ...admissionregistrationv1.RuleWithOperations) WebhookOption {
	return func(h *hook) {
		if len(rules) == 0 {
			h.fault("Rules has no rules")
		}
		for _, r := range rules {
			r = *r.DeepCopy()
			if r.Scope == nil {
				r.Scope = new(admissionregistrationv1.AllScopes)
			}
			h.Rules = append(h.Rules, r)
		}
	}
}

// FailurePolicy says what becomes of a request that the webhook could not decide. The
// default is Fail.
func FailurePolicy(p admissionregistrationv1.FailurePolicyType) WebhookOption {
	return func(h *hook) { h.FailurePolicy = &p }
}

// MatchPolicy says whether the rules hold for other versions of their resources too. The
// default is Equivalent: they do.
func MatchPolicy(p admissionregistrationv1.MatchPolicyType) WebhookOption {
	return func(h *hook) { h.MatchPolicy = &p }
}

// SideEffects says whether the handler does more than answer. The default is None; the other
// that the API server takes is NoneOnDryRun.
func SideEffects(c admissionregistrationv1.SideEffectClass) WebhookOption {
	return func(h *hook) { h.SideEffects = &c }
}

// Timeout says how long the API server waits for an answer: whole seconds, from 1 to 30. The
// default is ten seconds.
func Timeout(d time.Duration) WebhookOption {
	return func(h *hook) {
		if d < time.Second || d > 30*time.Second || d%time.Second != 0 {
			h.fault("timeout %s must be whole seconds, from 1 to 30", d)
		}
		h.TimeoutSeconds = new(int32(d / time.Second))
	}
}

// ReinvocationPolicy says whether a mutating webhook is called again when others have changed the
// object after it. The default is Never.
func ReinvocationPolicy(p admissionregistrationv1.ReinvocationPolicyType) WebhookOption {
	return func(h *hook) {
		if h.kind != mutating {
			h.fault("ReinvocationPolicy is for mutating webhooks")
		}
		h.ReinvocationPolicy = &p
	}
}

// NamespaceSelector says for objects in which namespaces the webhook is called, by their
// labels. The empty selector is for all. The default excludes kube-system and the operator's
// own namespace: see "Namespaces" in the package documentation.
func NamespaceSelector(selector metav1.LabelSelector) WebhookOption {
	return func(h *hook) { h.NamespaceSelector = selector.DeepCopy() }
}

// ObjectSelector says for which objects the webhook is called, by their labels. Users can
// set those as they like. The default is all objects.
func ObjectSelector(selector metav1.LabelSelector) WebhookOption {
	return func(h *hook) { h.ObjectSelector = selector.DeepCopy() }
}

// MatchConditions are CEL expressions that must hold for a request, or else the webhook is
// not called. Each has a name of its own.
func MatchConditions(conditions ...admissionregistrationv1.MatchCondition) WebhookOption {
	return func(h *hook) { h.MatchConditions = append(h.MatchConditions, conditions...) }
}

// complete fills in what depends on the other options, and notes all faults of the webhook.
func (s *settings) complete(h *hook) {
	if errs := validation.IsFullyQualifiedName(field.NewPath("name"), h.Name); len(errs) > 0 {
		h.faults = append(h.faults, errs.ToAggregate())
	}
	s.deriveRules(h)
	h.AdmissionReviewVersions = s.reviewVersions
	if h.NamespaceSelector == nil {
		h.NamespaceSelector = s.defaultNamespaces(h.Rules)
	}
	for _, err := range h.faults {
		s.fault("%s: %w", h, err)
	}
}

// defaultNamespaces returns the selector of who says nothing about namespaces.
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

var errUnknownHandler = errors.New("the handler does not say what it serves: give one of admission.NewHandler, or Rules")

// deriveRules makes the rules from the handler, unless the author gave them.
func (s *settings) deriveRules(h *hook) {
	if h.handler == nil {
		return // a fault already
	}
	known, ok := handlerinfo.By(h.handler)
	if !ok || len(known.Functions) == 0 {
		if ok || len(h.Rules) == 0 {
			h.faults = append(h.faults, errUnknownHandler)
		}
		return
	}
	mutates := slices.ContainsFunc(known.Functions, func(f handlerinfo.Function) bool { return f.Mutates })
	switch {
	case mutates && h.kind == validating:
		h.fault("the handler has functions of Mutate, and the API server refuses a patch from a validating webhook: register it with Mutating")
	case !mutates && h.kind == mutating:
		h.fault("the handler has no functions of Mutate: register it with Validating")
	}
	if len(h.Rules) == 0 {
		rules, faults := s.rules(known.Functions, *h.MatchPolicy)
		h.Rules = rules
		h.faults = append(h.faults, faults...)
	}
}
