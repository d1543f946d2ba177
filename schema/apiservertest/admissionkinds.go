package apiservertest

import (
	"reflect"
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

// fieldDefaults are the defaults of the fields of configurations, policies and bindings
// (kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
var fieldDefaults = map[string]any{
	"failurePolicy": admissionregistrationv1.Fail, "matchPolicy": admissionregistrationv1.Equivalent,
	"namespaceSelector": metav1.LabelSelector{}, "objectSelector": metav1.LabelSelector{}, "port": int32(443),
	"reinvocationPolicy": admissionregistrationv1.NeverReinvocationPolicy, "scope": admissionregistrationv1.AllScopes, "timeoutSeconds": int32(10),
}

// enumerations have the values of the fields of configurations, policies and bindings
// (kubernetes/pkg/apis/admissionregistration/validation/validation.go).
var enumerations = map[reflect.Type][]string{
	reflect.TypeFor[admissionregistrationv1.FailurePolicyType]():           {"Fail", "Ignore"},
	reflect.TypeFor[admissionregistrationv1.MatchPolicyType]():             {"Equivalent", "Exact"},
	reflect.TypeFor[admissionregistrationv1.OperationType]():               {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"},
	reflect.TypeFor[admissionregistrationv1.ParameterNotFoundActionType](): {"Allow", "Deny"},
	reflect.TypeFor[admissionregistrationv1.ReinvocationPolicyType]():      {"IfNeeded", "Never"},
	reflect.TypeFor[admissionregistrationv1.ScopeType]():                   {"*", "Cluster", "Namespaced"},
	reflect.TypeFor[admissionregistrationv1.SideEffectClass]():             {"None", "NoneOnDryRun"},
	reflect.TypeFor[admissionregistrationv1.ValidationAction]():            {"Audit", "Deny", "Warn"},
	reflect.TypeFor[metav1.StatusReason]():                                 {"Forbidden", "Invalid", "RequestEntityTooLarge"},
}

// isRegistration reports whether an object is a configuration, policy or binding.
func isRegistration(obj any) bool {
	return reflect.TypeOf(obj).Elem().PkgPath() == reflect.TypeFor[admissionregistrationv1.Rule]().PkgPath()
}

// complete sets the missing fields that have a default, except in metadata, and returns an error for each value that does not exist.
func complete(v reflect.Value, at *field.Path) (errs field.ErrorList) {
	if values, ok := enumerations[v.Type()]; ok && !slices.Contains(values, v.String()) {
		return field.ErrorList{field.NotSupported(at, v.String(), values)}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return complete(v.Elem(), at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			errs = append(errs, complete(v.Index(i), at.Index(i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name == "metadata" || name == "caBundle" { // which is long
				continue
			}
			child, path := v.Field(i), at
			if name != "" { // not inlined
				path = at.Child(name)
			}
			if value, ok := fieldDefaults[name]; ok && child.Kind() == reflect.Pointer && child.IsNil() {
				child.Set(reflect.New(child.Type().Elem()))
				child.Elem().Set(reflect.ValueOf(value))
			}
			errs = append(errs, complete(child, path)...)
		}
	}
	return errs
}

// setDefaults sets the defaults of configurations and policies, the label of a namespace, and the type of a Secret, whose
// stringData it moves to data (kubernetes/pkg/apis/core/v1/conversion.go, Convert_v1_Secret_To_core_Secret).
func setDefaults(obj any) {
	if isRegistration(obj) {
		_ = complete(reflect.ValueOf(obj).Elem(), nil) // validateAdmission returns the errors
	}
	switch o := obj.(type) {
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

// validateAdmission refuses the mistakes in configurations and policies with which a webhook or
// a policy is never called, or always fails, and values that do not exist. A server refuses more of them
// (kubernetes/pkg/apis/admissionregistration/validation/validation.go).
func validateAdmission(obj runtime.Object, expressions *environment.EnvSet) field.ErrorList {
	if !isRegistration(obj) {
		return nil
	}
	errs := complete(reflect.ValueOf(obj).Elem(), nil)
	var hooks []webhook.WebhookAccessor
	at, spec := field.NewPath("webhooks"), field.NewPath("spec")
	switch o := obj.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			hooks = append(hooks, webhook.NewMutatingWebhookAccessor("", "", &o.Webhooks[i]))
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			hooks = append(hooks, webhook.NewValidatingWebhookAccessor("", "", &o.Webhooks[i]))
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		errs = append(errs, validateValidatingPolicy(&o.Spec, newCompiler(expressions, o.Spec.ParamKind != nil), spec)...)
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		errs = append(errs, validateMutatingPolicy(&o.Spec, newCompiler(expressions, o.Spec.ParamKind != nil), spec)...)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		errs = append(errs, validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources, spec)...)
		at, actions := spec.Child("validationActions"), o.Spec.ValidationActions
		if len(actions) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		if slices.Contains(actions, admissionregistrationv1.Deny) && slices.Contains(actions, admissionregistrationv1.Warn) {
			errs = append(errs, field.Invalid(at, actions, "must not contain both Deny and Warn"))
		}
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		errs = append(errs, validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources, spec)...)
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

func validateWebhook(w webhook.WebhookAccessor, expressions *environment.EnvSet, at *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), w.GetName())
	if w.GetSideEffects() == nil {
		errs = append(errs, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
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
	errs = append(errs, validateSelectors(w.GetNamespaceSelector(), w.GetObjectSelector(), at)...)
	if conditions := w.GetMatchConditions(); len(conditions) > 0 {
		errs = append(errs, newCompiler(expressions, false).conditions(conditions, at.Child("matchConditions"))...)
	}
	return errs
}

func validateSelectors(namespaces, objects *metav1.LabelSelector, at *field.Path) field.ErrorList {
	labels := metav1validation.LabelSelectorValidationOptions{}
	return append(metav1validation.ValidateLabelSelector(namespaces, labels, at.Child("namespaceSelector")),
		metav1validation.ValidateLabelSelector(objects, labels, at.Child("objectSelector"))...)
}

func validateRule(rule *admissionregistrationv1.RuleWithOperations, at *field.Path) (errs field.ErrorList) {
	texts := make([]string, len(rule.Operations))
	for i, o := range rule.Operations {
		texts[i] = string(o)
	}
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
	return append(errs, validateSelectors(m.NamespaceSelector, m.ObjectSelector, at)...)
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
		errs = append(errs, field.Required(at.Child("parameterNotFoundAction"), ""))
	}
	return errs
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
	variables []admissionregistrationv1.Variable, at *field.Path,
) field.ErrorList {
	errs := c.conditions(conditions, at.Child("matchConditions"))
	errs = append(errs, c.variables(variables, at.Child("variables"))...)
	if constraints == nil || len(constraints.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("matchConstraints", "resourceRules"), ""))
	}
	return append(errs, validateMatch(constraints, at.Child("matchConstraints"))...)
}

func validateValidatingPolicy(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, c compiler, at *field.Path) field.ErrorList {
	errs := c.policy(spec.MatchConstraints, spec.MatchConditions, spec.Variables, at)
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(at.Child("validations"), "validations or auditAnnotations must contain at least one item"))
	}
	for i, v := range spec.Validations {
		at := at.Child("validations").Index(i)
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
	errs := c.policy(spec.MatchConstraints, spec.MatchConditions, spec.Variables, at)
	c.options.HasPatchTypes = true
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
