package breaking

import (
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/crdkit/crdkit/internal/generate"
)

// Many new rules refuse nothing that was accepted: they are about fields or values that are new
// too, or the old rules say the same with fewer words, or more. To find out, what the old schema tells of
// fields is put into the rules: some are never there, some always are, some have an enum.

// simplifier puts into rules what two schemas tell.
type simplifier struct {
	env  *cel.Env
	vars map[string]pair // what variables are
}

// pair is the old and the new schema of a value. The old one is nil if it is not known.
type pair struct{ was, is *structuralschema.Structural }

// harmless reports whether a rule of the new schema refuses nothing that the old one accepts: it is
// always true, or follows from the old rules.
func harmless(rule apiextensionsv1.ValidationRule, was, is *structuralschema.Structural) bool {
	s := &simplifier{
		env:  environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv(),
		vars: map[string]pair{"self": {was, is}},
	}
	simple := s.rule(rule)
	if simple == nil {
		return false
	}
	if program, err := s.env.Program(simple); err == nil {
		if result, _, err := program.Eval(map[string]any{}); err == nil && result == types.True {
			return true
		}
	}
	var said []ast.Expr
	for _, old := range was.XValidations {
		onlyUpdates := oldSelf.MatchString(old.Rule) && !creates(old)
		if other := s.rule(old); other != nil && creates(old) == creates(rule) && (!onlyUpdates || oldSelf.MatchString(rule.Rule)) {
			said = append(said, other.NativeRep().Expr())
		}
	}
	return follows(simple.NativeRep().Expr(), said)
}

// rule simplifies a rule. It returns nil for one that cannot be parsed.
func (s *simplifier) rule(rule apiextensionsv1.ValidationRule) *cel.Ast {
	parsed, issues := s.env.Parse(strings.TrimSpace(rule.Rule))
	if issues.Err() != nil {
		return nil
	}
	s.simplify(parsed.NativeRep().Expr())
	return parsed
}

// schemaOf returns the schemas of the value of an expression.
func (s *simplifier) schemaOf(e ast.Expr) pair {
	switch e.Kind() {
	case ast.IdentKind:
		return s.vars[e.AsIdent()]
	case ast.SelectKind:
		p, known := s.field(e.AsSelect())
		if known && p.was != nil && reflect.DeepEqual(p.was.Default, p.is.Default) {
			return p
		}
	}
	return pair{}
}

// field returns the schemas of a field, and whether they are known. The old one is nil if the field
// is new.
func (s *simplifier) field(e ast.SelectExpr) (p pair, known bool) {
	name := generate.FieldName(e.FieldName())
	of := s.schemaOf(e.Operand())
	if of.was == nil || of.is == nil || isMeta(name) || !declares(of.is, name) {
		return pair{}, false
	}
	return pair{propertyOf(of.was, name), propertyOf(of.is, name)}, true
}

// always reports whether a field is in each old object.
func (s *simplifier) always(e ast.SelectExpr) bool {
	p, known := s.field(e)
	if !known || p.was == nil || p.was.Nullable || !reflect.DeepEqual(p.was.Default, p.is.Default) {
		return false
	}
	return p.was.Default.Object != nil || requires(s.schemaOf(e.Operand()).was, generate.FieldName(e.FieldName()))
}

// simplify changes an expression in place, inner ones first.
func (s *simplifier) simplify(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			return
		}
		if p, known := s.field(e.AsSelect()); known && p.was == nil && p.is.Default.Object == nil {
			setBool(e, false)
		} else if s.always(e.AsSelect()) {
			setBool(e, true)
		}
	case ast.CallKind:
		s.call(e, e.AsCall())
	case ast.ComprehensionKind:
		s.comprehension(e, e.AsComprehension())
	}
}

func setBool(e ast.Expr, value bool) {
	e.SetKindCase(ast.NewExprFactory().NewLiteral(0, types.Bool(value)))
}

// isBool reports whether an expression is a literal.
func isBool(e ast.Expr, value bool) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.Bool(value)
}

// call simplifies the call of a function or operator.
func (s *simplifier) call(e ast.Expr, call ast.CallExpr) {
	args := call.Args()
	if call.IsMemberFunction() {
		s.simplify(call.Target())
	}
	for _, arg := range args {
		s.simplify(arg)
	}
	switch name := call.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		decisive := name == operators.LogicalOr // true decides || alone, and false decides &&
		switch {
		case isBool(args[0], decisive) || isBool(args[1], decisive):
			setBool(e, decisive)
		case isBool(args[0], !decisive):
			e.SetKindCase(args[1])
		case isBool(args[1], !decisive):
			e.SetKindCase(args[0])
		}
	case operators.LogicalNot:
		if isBool(args[0], true) || isBool(args[0], false) {
			setBool(e, isBool(args[0], false))
		}
	case operators.Conditional:
		if isBool(args[0], true) {
			e.SetKindCase(args[1])
		} else if isBool(args[0], false) {
			e.SetKindCase(args[2])
		}
	case operators.Equals, operators.NotEquals:
		if s.never(args[0], args[1]) || s.never(args[1], args[0]) {
			setBool(e, name == operators.NotEquals)
		}
	}
}

// comprehension simplifies a macro such as all. If its steps leave the result as it begins, it is that.
func (s *simplifier) comprehension(e ast.Expr, c ast.ComprehensionExpr) {
	s.simplify(c.IterRange())
	before := s.vars[c.IterVar()]
	delete(s.vars, c.IterVar())
	if list := s.schemaOf(c.IterRange()); list.was != nil && list.was.Items != nil && list.is.Items != nil && !c.HasIterVar2() {
		s.vars[c.IterVar()] = pair{list.was.Items, list.is.Items}
	}
	s.simplify(c.LoopStep())
	s.vars[c.IterVar()] = before
	isAccu := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == c.AccuVar() }
	if isAccu(c.LoopStep()) && isAccu(c.Result()) {
		e.SetKindCase(c.AccuInit())
	}
}

// never reports whether a field never has the value of a literal.
func (s *simplifier) never(field, value ast.Expr) bool {
	if field.Kind() != ast.SelectKind || value.Kind() != ast.LiteralKind || !s.always(field.AsSelect()) {
		return false
	}
	p, _ := s.field(field.AsSelect())
	enum := validationOrNone(p.was.ValueValidation).Enum
	return len(enum) > 0 && !slices.ContainsFunc(enum, func(v structuralschema.JSON) bool {
		return v.Object == value.AsLiteral().Value()
	})
}
