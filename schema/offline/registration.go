package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
)

// registration is a configuration of webhooks. They are of the mutating type, which has all
// the fields of a validating one.
type registration struct {
	handler  http.Handler
	mutating bool
	webhooks []admissionregistrationv1.MutatingWebhook
	err      error // of adding one
}

// add adds a validating webhook. A field that a mutating one does not have would be an error.
func (g *registration) add(w admissionregistrationv1.ValidatingWebhook) {
	text, err := json.Marshal(w)
	if err != nil {
		g.err = errors.Join(g.err, err)
		return
	}
	var same admissionregistrationv1.MutatingWebhook
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	g.err = errors.Join(g.err, d.Decode(&same))
	g.webhooks = append(g.webhooks, same)
}

func (g *registration) kind() string {
	if g.mutating {
		return "mutating"
	}
	return "validating"
}

// hooks returns the webhooks, ready to be called. The error has all mistakes.
func (g *registration) hooks(crd *apiextensionsv1.CustomResourceDefinition, conditions *conditionCompiler) ([]*hook, error) {
	webhooks := g.webhooks
	if len(webhooks) == 0 {
		name := "validate."
		if g.mutating {
			name = "mutate."
		}
		webhooks = []admissionregistrationv1.MutatingWebhook{{Name: name + crd.Name}}
	}
	var hooks []*hook
	errs := []error{g.err}
	names := sets.New[string]()
	for i, w := range webhooks {
		w := *w.DeepCopy()
		g.setDefaults(&w, crd)
		at := field.NewPath("webhooks").Index(i)
		faults := checkWebhook(&w, conditions, at)
		if w.Name != "" && names.Has(w.Name) {
			faults = append(faults, field.Duplicate(at.Child("name"), w.Name))
		}
		names.Insert(w.Name)
		if g.handler == nil {
			errs = append(errs, fmt.Errorf("%s webhook %q: the handler is nil", g.kind(), w.Name))
		}
		for _, err := range faults {
			errs = append(errs, fmt.Errorf("%s webhook %q: %w", g.kind(), w.Name, err))
		}
		if g.handler == nil || len(faults) > 0 {
			continue
		}
		k, err := newHook(g.handler, w, g.mutating, conditions)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s webhook %q: %w", g.kind(), w.Name, err))
			continue
		}
		hooks = append(hooks, k)
	}
	return hooks, errors.Join(errs...)
}

// setDefaults sets what a webhook leaves out
// (kubernetes/pkg/apis/admissionregistration/v1/defaults.go), and what [Mutate] and
// [Validate] add to that.
func (g *registration) setDefaults(w *admissionregistrationv1.MutatingWebhook, crd *apiextensionsv1.CustomResourceDefinition) {
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
	if len(w.Rules) > 0 {
		return
	}
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	if !g.mutating {
		operations = append(operations, admissionregistrationv1.Delete)
	}
	w.Rules = []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{crd.Spec.Group}, APIVersions: []string{"*"}, Resources: []string{crd.Spec.Names.Plural}},
	}}
}

// checkWebhook is validateMutatingWebhook, and validateAdmissionReviewVersions, of
// kubernetes/pkg/apis/admissionregistration/validation/validation.go. There may be no
// clientConfig.
func checkWebhook(w *admissionregistrationv1.MutatingWebhook, conditions *conditionCompiler, at *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), w.Name)
	for i := range w.Rules {
		errs = append(errs, checkRule(&w.Rules[i], at.Child("rules").Index(i))...)
	}
	errs = append(errs, oneOf(at.Child("failurePolicy"), *w.FailurePolicy, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)...)
	errs = append(errs, oneOf(at.Child("matchPolicy"), *w.MatchPolicy, admissionregistrationv1.Equivalent, admissionregistrationv1.Exact)...)
	errs = append(errs, oneOf(at.Child("sideEffects"), *w.SideEffects, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)...)
	if seconds := *w.TimeoutSeconds; seconds < 1 || seconds > 30 {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), seconds, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(w.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(w.ObjectSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("objectSelector"))...)
	errs = append(errs, oneOf(at.Child("reinvocationPolicy"), *w.ReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
	errs = append(errs, checkAddress(&w.ClientConfig, at.Child("clientConfig"))...)
	errs = append(errs, conditions.check(w.MatchConditions, at.Child("matchConditions"))...)
	return append(errs, checkReviewVersions(w.AdmissionReviewVersions, at.Child("admissionReviewVersions"))...)
}

func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

func checkAddress(to *admissionregistrationv1.WebhookClientConfig, at *field.Path) field.ErrorList {
	switch s := to.Service; {
	case to.URL != nil && s != nil:
		return field.ErrorList{field.Required(at, "exactly one of url or service is required")}
	case to.URL != nil:
		return webhookutil.ValidateWebhookURL(at.Child("url"), *to.URL, true)
	case s != nil:
		port := int32(443)
		if s.Port != nil {
			port = *s.Port
		}
		return webhookutil.ValidateWebhookService(at.Child("service"), s.Name, s.Namespace, s.Path, port)
	}
	return nil
}

// checkRule is validateRuleWithOperations, without the look for resources that contain each
// other.
func checkRule(rule *admissionregistrationv1.RuleWithOperations, at *field.Path) field.ErrorList {
	const every = "*"
	var errs field.ErrorList
	if len(rule.Operations) == 0 {
		errs = append(errs, field.Required(at.Child("operations"), ""))
	}
	if len(rule.Operations) > 1 && slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
		errs = append(errs, field.Invalid(at.Child("operations"), rule.Operations, "if '*' is present, must not specify other operations"))
	}
	for i, operation := range rule.Operations {
		errs = append(errs, oneOf(at.Child("operations").Index(i), operation, admissionregistrationv1.OperationAll,
			admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Delete, admissionregistrationv1.Update)...)
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), ""))
	}
	if len(rule.APIGroups) > 1 && slices.Contains(rule.APIGroups, every) {
		errs = append(errs, field.Invalid(at.Child("apiGroups"), rule.APIGroups, "if '*' is present, must not specify other API groups"))
	}
	if len(rule.APIVersions) == 0 {
		errs = append(errs, field.Required(at.Child("apiVersions"), ""))
	}
	if len(rule.APIVersions) > 1 && slices.Contains(rule.APIVersions, every) {
		errs = append(errs, field.Invalid(at.Child("apiVersions"), rule.APIVersions, "if '*' is present, must not specify other API versions"))
	}
	for i, version := range rule.APIVersions {
		if version == "" {
			errs = append(errs, field.Required(at.Child("apiVersions").Index(i), ""))
		}
	}
	if len(rule.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), ""))
	}
	for i, resource := range rule.Resources {
		if resource == "" {
			errs = append(errs, field.Required(at.Child("resources").Index(i), ""))
		}
	}
	if rule.Scope != nil {
		errs = append(errs, oneOf(at.Child("scope"), *rule.Scope, admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)...)
	}
	return errs
}

func checkReviewVersions(versions []string, at *field.Path) (errs field.ErrorList) {
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			errs = append(errs, field.Invalid(at.Index(i), v, "duplicate version"))
			continue
		}
		for _, text := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, text))
		}
	}
	if reviewVersion(versions) == "" {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

// reviewVersion is the first of some versions that a server knows: v1 or v1beta1.
func reviewVersion(versions []string) string {
	for _, v := range versions {
		if v == "v1" || v == "v1beta1" {
			return v
		}
	}
	return ""
}
