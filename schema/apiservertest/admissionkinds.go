package apiservertest

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
)

// setDefault sets a pointer that is nil.
func setDefault[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// setDefaults sets the defaults of configurations and policies
// (kubernetes/pkg/apis/admissionregistration/v1/defaults.go), the label of a namespace, and the type of a Secret, whose
// stringData it moves to data (kubernetes/pkg/apis/core/v1/conversion.go, Convert_v1_Secret_To_core_Secret).
func setDefaults(obj any) {
	switch o := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
			setWebhookDefaults(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setWebhookDefaults(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, &w.ClientConfig, w.Rules)
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		setDefault(&o.Spec.FailurePolicy, admissionregistrationv1.Fail)
		setMatchDefaults(o.Spec.MatchConstraints)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		setMatchDefaults(o.Spec.MatchResources)
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		setDefault(&o.Spec.FailurePolicy, admissionregistrationv1.Fail)
		setMatchDefaults(o.Spec.MatchConstraints)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		setMatchDefaults(o.Spec.MatchResources)
	case *corev1.Namespace:
		if o.Name != "" {
			metav1.SetMetaDataLabel(&o.ObjectMeta, corev1.LabelMetadataName, o.Name)
		}
	case *corev1.Secret:
		if o.Type == "" {
			o.Type = corev1.SecretTypeOpaque
		}
		if len(o.StringData) > 0 && o.Data == nil {
			o.Data = map[string][]byte{}
		}
		for key, value := range o.StringData {
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
	}
}

func setWebhookDefaults(
	failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType,
	namespaces, objects **metav1.LabelSelector, seconds **int32,
	to *admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations,
) {
	setDefault(failure, admissionregistrationv1.Fail)
	setDefault(match, admissionregistrationv1.Equivalent)
	setDefault(namespaces, metav1.LabelSelector{})
	setDefault(objects, metav1.LabelSelector{})
	setDefault(seconds, 10)
	if to.Service != nil {
		setDefault(&to.Service.Port, 443)
	}
	for i := range rules {
		setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func setMatchDefaults(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	setDefault(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	setDefault(&m.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
}

// validateAdmission refuses the mistakes in configurations and policies with which a webhook or
// a policy is never called, or always fails, and values that do not exist. A server refuses more of them
// (kubernetes/pkg/apis/admissionregistration/validation/validation.go).
func validateAdmission(obj runtime.Object, expressions *environment.EnvSet) (errs field.ErrorList) {
	var hooks []webhook.WebhookAccessor
	at, spec := field.NewPath("webhooks"), field.NewPath("spec")
	switch o := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			hooks = append(hooks, webhook.NewMutatingWebhookAccessor("", "", &o.Webhooks[i]))
			errs = append(errs, supported(at.Index(i).Child("reinvocationPolicy"), *o.Webhooks[i].ReinvocationPolicy, reinvocations)...)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			hooks = append(hooks, webhook.NewValidatingWebhookAccessor("", "", &o.Webhooks[i]))
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return validateValidatingPolicy(&o.Spec, newCompiler(expressions, o.Spec.ParamKind != nil), spec)
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return validateMutatingPolicy(&o.Spec, newCompiler(expressions, o.Spec.ParamKind != nil), spec)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		errs = validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources, spec)
		at, actions := spec.Child("validationActions"), o.Spec.ValidationActions
		if len(actions) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		for i, a := range actions {
			errs = append(errs, supported(at.Index(i), a, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit, admissionregistrationv1.Deny, admissionregistrationv1.Warn})...)
		}
		if slices.Contains(actions, admissionregistrationv1.Deny) && slices.Contains(actions, admissionregistrationv1.Warn) {
			errs = append(errs, field.Invalid(at, actions, "must not contain both Deny and Warn"))
		}
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources, spec)
	}
	names := map[string]bool{}
	for i, w := range hooks {
		errs = append(errs, validateWebhook(w, expressions, at.Index(i))...)
		if names[w.GetName()] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), w.GetName()))
		}
		names[w.GetName()] = true
	}
	return errs
}

var (
	failures      = []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore}
	matches       = []admissionregistrationv1.MatchPolicyType{admissionregistrationv1.Equivalent, admissionregistrationv1.Exact}
	reinvocations = []admissionregistrationv1.ReinvocationPolicyType{admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy}
	scopes        = []admissionregistrationv1.ScopeType{admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope}
	operations    = []admissionregistrationv1.OperationType{
		admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Delete, admissionregistrationv1.Update,
	}
	reasons = []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge}
)

// supported returns an error for a value that does not exist.
func supported[T ~string](at *field.Path, value T, all []T) field.ErrorList {
	if slices.Contains(all, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, all)}
}

func validateWebhook(w webhook.WebhookAccessor, expressions *environment.EnvSet, at *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), w.GetName())
	allowed := []admissionregistrationv1.SideEffectClass{admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun}
	switch effects := w.GetSideEffects(); {
	case effects == nil:
		errs = append(errs, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	case !slices.Contains(allowed, *effects):
		errs = append(errs, field.NotSupported(at.Child("sideEffects"), *effects, allowed))
	}
	if seconds := *w.GetTimeoutSeconds(); seconds < 1 || seconds > 30 {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), seconds, "the timeout value must be between 1 and 30 seconds"))
	}
	if versions := w.GetAdmissionReviewVersions(); !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1") {
		errs = append(errs, field.Invalid(at.Child("admissionReviewVersions"), versions, "must include at least one of v1, v1beta1"))
	}
	to := w.GetClientConfig()
	switch service := to.Service; {
	case (to.URL == nil) == (service == nil):
		errs = append(errs, field.Required(at.Child("clientConfig"), "exactly one of url or service is required"))
	case to.URL != nil:
		errs = append(errs, webhookutil.ValidateWebhookURL(at.Child("clientConfig", "url"), *to.URL, true)...)
	default:
		errs = append(errs, webhookutil.ValidateWebhookService(at.Child("clientConfig", "service"), service.Name, service.Namespace, service.Path, *service.Port)...)
	}
	for i, r := range w.GetRules() {
		errs = append(errs, validateRule(&r, at.Child("rules").Index(i))...)
	}
	errs = append(errs, supported(at.Child("failurePolicy"), *w.GetFailurePolicy(), failures)...)
	errs = append(errs, validateSelection(*w.GetMatchPolicy(), w.GetNamespaceSelector(), w.GetObjectSelector(), at)...)
	if conditions := w.GetMatchConditions(); len(conditions) > 0 {
		errs = append(errs, newCompiler(expressions, false).conditions(conditions, at.Child("matchConditions"))...)
	}
	return errs
}

func validateSelection(match admissionregistrationv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector, at *field.Path) field.ErrorList {
	labels := metav1validation.LabelSelectorValidationOptions{}
	return slices.Concat(supported(at.Child("matchPolicy"), match, matches),
		metav1validation.ValidateLabelSelector(namespaces, labels, at.Child("namespaceSelector")),
		metav1validation.ValidateLabelSelector(objects, labels, at.Child("objectSelector")))
}

func validateRule(rule *admissionregistrationv1.RuleWithOperations, at *field.Path) (errs field.ErrorList) {
	texts := make([]string, len(rule.Operations))
	for i, o := range rule.Operations {
		texts[i] = string(o)
		errs = append(errs, supported(at.Child("operations").Index(i), o, operations)...)
	}
	errs = append(errs, supported(at.Child("scope"), *rule.Scope, scopes)...)
	for name, values := range map[string][]string{"operations": texts, "apiGroups": rule.APIGroups, "apiVersions": rule.APIVersions, "resources": rule.Resources} {
		if len(values) == 0 {
			errs = append(errs, field.Required(at.Child(name), ""))
		}
		if name != "resources" && len(values) > 1 && slices.Contains(values, "*") {
			errs = append(errs, field.Invalid(at.Child(name), values, "if '*' is present, must not specify others"))
		}
	}
	return errs
}

// validateMatch checks what policies and bindings match, which may be nil.
func validateMatch(m *admissionregistrationv1.MatchResources, at *field.Path) (errs field.ErrorList) {
	if m == nil {
		return nil
	}
	for name, rules := range map[string][]admissionregistrationv1.NamedRuleWithOperations{"resourceRules": m.ResourceRules, "excludeResourceRules": m.ExcludeResourceRules} {
		for i := range rules {
			errs = append(errs, validateRule(&rules[i].RuleWithOperations, at.Child(name).Index(i))...)
		}
	}
	return append(errs, validateSelection(*m.MatchPolicy, m.NamespaceSelector, m.ObjectSelector, at)...)
}

// validateBinding checks what both kinds of bindings have.
func validateBinding(policy string, params *admissionregistrationv1.ParamRef, match *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	errs := validateMatch(match, at.Child("matchResources"))
	if policy == "" {
		errs = append(errs, field.Required(at.Child("policyName"), ""))
	}
	if params == nil {
		return errs
	}
	at = at.Child("paramRef")
	if (params.Name == "") == (params.Selector == nil) {
		errs = append(errs, field.Required(at, "exactly one of name or selector is required"))
	}
	if params.ParameterNotFoundAction == nil {
		return append(errs, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return append(errs, supported(at.Child("parameterNotFoundAction"), *params.ParameterNotFoundAction, []admissionregistrationv1.ParameterNotFoundActionType{admissionregistrationv1.AllowAction, admissionregistrationv1.DenyAction})...)
}

// compiler compiles the expressions of one object.
type compiler struct {
	*cel.CompositedCompiler
	options cel.OptionalVariableDeclarations
}

func newCompiler(expressions *environment.EnvSet, params bool) compiler {
	composited, err := cel.NewCompositedCompiler(expressions)
	if err != nil {
		panic(err) // the server's own environment
	}
	return compiler{composited, cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}}
}

func (c compiler) check(expression cel.ExpressionAccessor, at *field.Path) field.ErrorList {
	if strings.TrimSpace(expression.GetExpression()) == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if err := c.CompileCELExpression(expression, c.options, environment.NewExpressions).Error; err != nil {
		return field.ErrorList{field.Invalid(at, expression.GetExpression(), err.Detail)}
	}
	return nil
}

func (c compiler) conditions(conditions []admissionregistrationv1.MatchCondition, at *field.Path) (errs field.ErrorList) {
	for i := range conditions {
		errs = append(errs, c.check((*matchconditions.MatchCondition)(&conditions[i]), at.Index(i).Child("expression"))...)
	}
	return errs
}

// variables checks variables, each of which may use those before it.
func (c compiler) variables(variables []admissionregistrationv1.Variable, at *field.Path) (errs field.ErrorList) {
	for i, v := range variables {
		variable := &validating.Variable{Name: v.Name, Expression: v.Expression}
		errs = append(errs, c.check(variable, at.Index(i).Child("expression"))...)
		c.CompileAndStoreVariable(variable, c.options, environment.NewExpressions)
	}
	return errs
}

// policy checks what both kinds of policies have.
func (c compiler) policy(
	constraints *admissionregistrationv1.MatchResources, conditions []admissionregistrationv1.MatchCondition,
	variables []admissionregistrationv1.Variable, failure admissionregistrationv1.FailurePolicyType, at *field.Path,
) field.ErrorList {
	errs := c.conditions(conditions, at.Child("matchConditions"))
	errs = append(errs, c.variables(variables, at.Child("variables"))...)
	errs = append(errs, supported(at.Child("failurePolicy"), failure, failures)...)
	if constraints == nil || len(constraints.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("matchConstraints", "resourceRules"), ""))
	}
	return append(errs, validateMatch(constraints, at.Child("matchConstraints"))...)
}

func validateValidatingPolicy(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, c compiler, at *field.Path) field.ErrorList {
	errs := c.policy(spec.MatchConstraints, spec.MatchConditions, spec.Variables, *spec.FailurePolicy, at)
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(at.Child("validations"), "validations or auditAnnotations must contain at least one item"))
	}
	for i, v := range spec.Validations {
		at := at.Child("validations").Index(i)
		if v.Reason != nil {
			errs = append(errs, supported(at.Child("reason"), *v.Reason, reasons)...)
		}
		errs = append(errs, c.check(&validating.ValidationCondition{Expression: v.Expression}, at.Child("expression"))...)
		if v.MessageExpression != "" {
			errs = append(errs, c.check(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, at.Child("messageExpression"))...)
		}
	}
	for i, a := range spec.AuditAnnotations {
		errs = append(errs, c.check(&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}, at.Child("auditAnnotations").Index(i).Child("valueExpression"))...)
	}
	return errs
}

func validateMutatingPolicy(spec *admissionregistrationv1.MutatingAdmissionPolicySpec, c compiler, at *field.Path) field.ErrorList {
	errs := c.policy(spec.MatchConstraints, spec.MatchConditions, spec.Variables, *spec.FailurePolicy, at)
	c.options.HasPatchTypes = true
	errs = append(errs, supported(at.Child("reinvocationPolicy"), spec.ReinvocationPolicy, reinvocations)...)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(at.Child("mutations"), ""))
	}
	if m := spec.MatchConstraints; m != nil && slices.ContainsFunc(m.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.Operations, admissionregistrationv1.Delete)
	}) {
		errs = append(errs, field.Invalid(at.Child("matchConstraints", "resourceRules"), admissionregistrationv1.Delete, "a policy cannot change what is deleted"))
	}
	for i, m := range spec.Mutations {
		at := at.Child("mutations").Index(i)
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			errs = append(errs, c.check(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, at.Child("jsonPatch", "expression"))...)
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			errs = append(errs, c.check(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, at.Child("applyConfiguration", "expression"))...)
		default:
			errs = append(errs, field.Invalid(at.Child("patchType"), m.PatchType, "must be JSONPatch with jsonPatch, or ApplyConfiguration with applyConfiguration"))
		}
	}
	return errs
}
