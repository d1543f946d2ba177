package offline

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// conditionCompiler compiles match conditions. Its parts are made when they are needed.
type conditionCompiler struct {
	env      *environment.EnvSet
	compiler cel.Compiler
}

func (c *conditionCompiler) init() {
	if c.env == nil {
		c.env = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
		c.compiler = cel.NewCompiler(c.env)
	}
}

// check is validateMatchConditions of the server's validation. The variable authorizer is
// one that a server has.
func (c *conditionCompiler) check(conditions []admissionregistrationv1.MatchCondition, at *field.Path) (errs field.ErrorList) {
	const most = 64
	if len(conditions) > most {
		errs = append(errs, field.TooMany(at, len(conditions), most))
	}
	names := sets.New[string]()
	for i, m := range conditions {
		at := at.Index(i)
		if text := strings.TrimSpace(m.Expression); text == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else {
			errs = append(errs, c.checkExpression(text, at.Child("expression"))...)
		}
		if m.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		}
		for _, text := range validation.IsQualifiedName(m.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, text))
		}
		if names.Has(m.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), m.Name))
		}
		names.Insert(m.Name)
	}
	return errs
}

func (c *conditionCompiler) checkExpression(text string, at *field.Path) field.ErrorList {
	c.init()
	condition := &matchconditions.MatchCondition{Expression: text}
	err := c.compiler.CompileCELExpression(condition, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions).Error
	switch {
	case err == nil:
	case err.Type == apiservercel.ErrorTypeRequired:
		return field.ErrorList{field.Required(at, err.Detail)}
	case err.Type == apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(at, text, err.Detail)}
	default:
		return field.ErrorList{field.InternalError(at, err)}
	}
	if c.compiler.CompileCELExpression(condition, cel.OptionalVariableDeclarations{}, environment.NewExpressions).Error != nil {
		return field.ErrorList{field.Forbidden(at, "the variable authorizer is not there offline")}
	}
	return nil
}

// compile is GetCompiledMatcher of apiserver/pkg/admission/plugin/webhook/accessors.go. It
// returns nil if there are no conditions.
func (c *conditionCompiler) compile(w *admissionregistrationv1.MutatingWebhook) matchconditions.Matcher {
	if len(w.MatchConditions) == 0 {
		return nil
	}
	c.init()
	expressions := make([]cel.ExpressionAccessor, len(w.MatchConditions))
	for i, m := range w.MatchConditions {
		expressions[i] = &matchconditions.MatchCondition{Name: m.Name, Expression: m.Expression}
	}
	compiled := cel.NewConditionCompiler(c.env).CompileCondition(expressions, cel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	return matchconditions.NewMatcher(compiled, w.FailurePolicy, "webhook", "admit", w.Name)
}
