package breaking

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/debug"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
)

// A rule often allows more than before: one more case, a higher limit, a longer list.

// follows reports whether a rule is true where some others are.
func follows(b ast.Expr, others []ast.Expr) bool {
	if x, y, ok := operands(b, operators.LogicalAnd); ok {
		return follows(x, others) && follows(y, others)
	}
	return slices.ContainsFunc(others, func(a ast.Expr) bool { return entailment{}.entails(a, b) })
}

// entailment is what is known of two expressions.
type entailment map[[2]ast.Expr]bool

// entails reports whether b is true where a is, and a is false where b is, without an error. It is false if that is not known.
func (e entailment) entails(a, b ast.Expr) bool {
	both := [2]ast.Expr{a, b}
	if _, known := e[both]; !known {
		e[both] = same(a, b) || e.decide(a, b)
	}
	return e[both]
}

func (e entailment) decide(a, b ast.Expr) bool {
	if x, y, ok := operands(b, operators.LogicalAnd); ok {
		return e.entails(a, x) && e.entails(a, y)
	}
	if x, y, ok := operands(a, operators.LogicalOr); ok {
		return e.entails(x, b) && e.entails(y, b)
	}
	if x, y, ok := operands(b, operators.LogicalOr); ok && (e.entails(a, x) || e.entails(a, y)) {
		return true
	}
	if x, y, ok := operands(a, operators.LogicalAnd); ok && (e.entails(x, b) || e.entails(y, b)) {
		return true
	}
	switch {
	case a.Kind() == ast.ComprehensionKind && b.Kind() == ast.ComprehensionKind:
		return e.forEach(a.AsComprehension(), b.AsComprehension())
	case a.Kind() != ast.CallKind || b.Kind() != ast.CallKind:
		return false
	}
	x, y := a.AsCall().Args(), b.AsCall().Args()
	was, is := comparisons[a.AsCall().FunctionName()], comparisons[b.AsCall().FunctionName()]
	switch name := a.AsCall().FunctionName(); {
	case was.than != 0 && was.than == is.than:
		if !same(x[0], y[0]) || x[1].Kind() != ast.LiteralKind || y[1].Kind() != ast.LiteralKind {
			return false
		}
		limit, ok := x[1].AsLiteral().(traits.Comparer)
		return ok && (limit.Compare(y[1].AsLiteral()) == was.than || is.equal && limit.Compare(y[1].AsLiteral()) == types.IntZero)
	case name == operators.Equals || name == operators.In:
		before, known := values(a.AsCall())
		now, other := values(b.AsCall())
		return known && other && same(x[0], y[0]) && !slices.ContainsFunc(before, func(was ast.Expr) bool {
			return !slices.ContainsFunc(now, func(is ast.Expr) bool { return same(was, is) })
		})
	case name != b.AsCall().FunctionName():
		return false
	case name == operators.LogicalNot:
		return e.entails(y[0], x[0])
	case name == operators.Conditional:
		return same(x[0], y[0]) && e.entails(x[1], y[1]) && e.entails(x[2], y[2])
	}
	return false
}

// comparisons are the operators that compare with a limit: where a value is from it, and whether it may be it.
var comparisons = map[string]struct {
	than  types.Int
	equal bool
}{
	operators.Less: {types.IntNegOne, false}, operators.LessEquals: {types.IntNegOne, true},
	operators.Greater: {types.IntOne, false}, operators.GreaterEquals: {types.IntOne, true},
}

// values returns the literals that a comparison allows: the one of ==, or those in the list of in. ok is false if there are others.
func values(call ast.CallExpr) (all []ast.Expr, ok bool) {
	switch name, args := call.FunctionName(), call.Args(); {
	case name == operators.Equals:
		all = args[1:]
	case name == operators.In && args[1].Kind() == ast.ListKind:
		all = args[1].AsList().Elements()
	default:
		return nil, false
	}
	return all, !slices.ContainsFunc(all, func(e ast.Expr) bool { return e.Kind() != ast.LiteralKind })
}

// forEach is entails for the macros all and exists.
func (e entailment) forEach(a, b ast.ComprehensionExpr) bool {
	for _, macro := range []string{operators.LogicalAnd, operators.LogicalOr} {
		x, p, ok := operands(a.LoopStep(), macro)
		y, q, other := operands(b.LoopStep(), macro)
		if ok && other && same(x, y) && a.IterVar() == b.IterVar() && a.IterVar2() == b.IterVar2() {
			return same(a.IterRange(), b.IterRange()) && e.entails(p, q)
		}
	}
	return false
}

// operands returns the operands of a logical operator.
func operands(e ast.Expr, operator string) (x, y ast.Expr, ok bool) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operator {
		return nil, nil, false
	}
	args := e.AsCall().Args()
	return args[0], args[1], true
}

func same(a, b ast.Expr) bool { return debug.ToDebugString(a) == debug.ToDebugString(b) }
