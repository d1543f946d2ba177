package breaking

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// randomRule returns a rule about i, an integer, l, a list of integers, and m, which may lack n.
func randomRule(r *rand.Rand, depth int) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	inner := func() string { return randomRule(r, depth-1) }
	if depth == 0 {
		operand := pick("i", "size(l)", "m.n", "i % 2", "1 / i")
		return pick(
			operand+pick(" < ", " <= ", " > ", " >= ", " == ", " != ")+pick("0", "1", "2"),
			operand+" in ["+pick("0", "1", "0, 1", "1, 0, 2", "0, 2", "0, 1 / i", "")+"]",
			"has(m.n)", "i == size(l)",
		)
	}
	switch r.IntN(7) {
	case 0:
		return "!(" + inner() + ")"
	case 1:
		return "(" + inner() + " ? " + inner() + " : " + inner() + ")"
	case 2:
		return pick("l", "[1, 2]") + pick(".all(i, ", ".exists(i, ", ".exists_one(i, ", ".all(x, ") + inner() + ")"
	case 3:
		return inner()
	}
	return "(" + inner() + pick(" && ", " || ") + inner() + ")"
}

// mutated returns a rule with one other number, operator or name.
func mutated(r *rand.Rand, rule string) string {
	alike := [][]string{{"0", "1", "2"}, {" < ", " <= "}, {" > ", " >= "}, {" < ", " > "}, {" <= ", " >= "}, {"&&", "||"}, {".all", ".exists"}, {"(i, ", "(x, "}, {"[1,", "["}, {"== 0", "in [0, 1]", "in [0, 1 / i]"}}
	for range 20 {
		parts := alike[r.IntN(len(alike))]
		old, new := parts[r.IntN(len(parts))], parts[r.IntN(len(parts))]
		if n := strings.Count(rule, old); n > 0 {
			at := 0
			for k := r.IntN(n); k >= 0; k-- {
				at += strings.Index(rule[at:], old) + 1
			}
			return rule[:at-1] + new + rule[at-1+len(old):]
		}
	}
	return rule
}

// What follows from other rules is true wherever these are, without an error.
func TestFollows_IsSound(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("i", cel.IntType), cel.Variable("l", cel.ListType(cel.IntType)), cel.Variable("m", cel.MapType(cel.StringType, cel.IntType)))
	expect.NoError(t, err)
	var values []map[string]any
	for i := -1; i <= 3; i++ {
		for _, l := range [][]int{{}, {0}, {1}, {2, 0}, {1, 2, 3}} {
			for _, m := range []map[string]int{{}, {"n": 0}, {"n": 2}} {
				values = append(values, map[string]any{"i": i, "l": l, "m": m})
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	known := 0
	for range tier.Pick(3000, 30_000) {
		texts := []string{randomRule(r, r.IntN(3)), randomRule(r, r.IntN(3))}
		next := mutated(r, texts[0])
		switch r.IntN(4) {
		case 0:
			next = mutated(r, next)
		case 1:
			next = fmt.Sprintf("(%s) && (%s)", next, mutated(r, texts[1]))
		case 2:
			next = fmt.Sprintf("(%s) || (%s)", randomRule(r, 1), next)
		}
		var programs []cel.Program
		var rules []ast.Expr
		for _, text := range append(texts, next) {
			checked, issues := env.Compile(text)
			if issues.Err() != nil {
				break
			}
			program, err := env.Program(checked)
			expect.NoError(t, err)
			programs, rules = append(programs, program), append(rules, checked.NativeRep().Expr())
		}
		if len(rules) < 3 || !follows(rules[2], rules[:2]) {
			continue
		}
		known++
		for _, value := range values {
			holds := func(p cel.Program) bool {
				result, _, err := p.Eval(value)
				return err == nil && result == types.True
			}
			if holds(programs[0]) && holds(programs[1]) && !holds(programs[2]) {
				t.Fatalf("%s does not follow from %q with %v", next, texts, value)
			}
		}
	}
	if known < 400 {
		t.Errorf("%d rules follow from others, want 400 at least", known)
	}
	t.Logf("%d rules follow from others", known)
}
