package equivalence

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/crdkit/crdkit/internal/generate"
)

// hint has fields, and values that matter there: those with which an expression compares them, or the bounds of a schema.
type hint struct {
	within []string // the fields of a schema around an expression
	names  []string
	values []any
	sizes  []int // of lists
}

var environ = sync.OnceValue(func() *cel.Env {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
})

// expressionHints returns the hints of a CEL expression: each part that is joined by && or || is one, and the whole. It also
// returns the texts that the expression compares with a property of the request.
func expressionHints(expression string, within ...string) (hints []hint, texts map[property][]string) {
	parsed, issues := environ().Parse(expression)
	if issues.Err() != nil {
		return nil, nil
	}
	var visit func(e ast.NavigableExpr)
	visit = func(e ast.NavigableExpr) {
		h := hint{within: within}
		for _, part := range ast.MatchDescendants(e, ast.AllMatcher()) {
			switch part.Kind() {
			case ast.SelectKind:
				h.name(part.AsSelect().FieldName())
			case ast.LiteralKind:
				h.literal(part.AsLiteral().Value())
			}
		}
		if len(h.names) > 0 {
			h.values = append(h.values, true, false)
			hints = append(hints, h)
		}
		if e.Kind() == ast.CallKind && (e.AsCall().FunctionName() == operators.LogicalAnd || e.AsCall().FunctionName() == operators.LogicalOr) {
			for _, child := range e.Children() {
				visit(child)
			}
		}
	}
	root := ast.NavigateAST(parsed.NativeRep())
	visit(root)
	texts = map[property][]string{}
	for _, call := range ast.MatchDescendants(root, ast.KindMatcher(ast.CallKind)) {
		for _, child := range call.Children() {
			p := propertyOf(selected(child))
			for _, part := range ast.MatchDescendants(call, ast.KindMatcher(ast.LiteralKind)) {
				if text, ok := part.AsLiteral().Value().(string); ok && p != "" {
					texts[p] = append(texts[p], p.with(text)...)
				}
			}
		}
	}
	return hints, texts
}

func (h *hint) name(name string) {
	name = generate.FieldName(name)
	if !slices.Contains(h.names, name) && !slices.Contains([]string{"object", "oldObject", "spec", "status", "request", "metadata"}, name) {
		h.names = append(h.names, name)
	}
}

// literal adds a value with which an expression compares a field: a literal, or all that parameters have.
func (h *hint) literal(value any) {
	switch v := value.(type) {
	case string:
		h.values = append(h.values, v)
		h.name(v)
		if n, err := strconv.ParseInt(v, 10, 64); err == nil { // of a ConfigMap
			h.around(n)
		}
	case int64:
		h.around(v)
	case float64:
		h.values = append(h.values, v)
	case map[string]any:
		for _, name := range sorted(v) {
			h.literal(v[name])
		}
	case []any:
		for _, item := range v {
			h.literal(item)
		}
	}
}

// around adds a number and those next to it.
func (h *hint) around(n int64) {
	h.values = append(h.values, n-1, n, n+1)
	for _, size := range []int64{n - 1, n, n + 1} {
		if size >= 0 && size <= 1000 {
			h.sizes = append(h.sizes, int(size))
		}
	}
}

// addSchema adds the bounds of the fields of a schema, the hints of its rules, and the names that those of an object compare
// with its own.
func (c *comparison) addSchema(s *structuralschema.Structural, path ...string) {
	h := hint{}
	if len(path) > 0 {
		h = hint{within: path[:len(path)-1], names: path[len(path)-1:]}
	}
	if v := s.ValueValidation; v != nil {
		for _, n := range []*int64{v.MinItems, v.MaxItems, v.MinProperties, v.MaxProperties} {
			if n != nil {
				h.around(*n)
			}
		}
		h.values = nil
		for _, n := range []*float64{v.Minimum, v.Maximum} {
			if n != nil {
				h.values = append(h.values, int64(*n)-1, int64(*n), int64(*n)+1)
			}
		}
		for _, n := range []*int64{v.MinLength, v.MaxLength} {
			if n != nil && *n < 5000 {
				h.values = append(h.values, strings.Repeat("a", int(max(0, *n-1))), strings.Repeat("a", int(*n)), strings.Repeat("a", int(*n)+1))
			}
		}
		for _, value := range v.Enum {
			h.values = append(h.values, value.Object)
		}
	}
	if len(path) > 0 {
		c.bounds.add(h)
	}
	for _, rule := range s.XValidations {
		hints, texts := expressionHints(rule.Rule, path...)
		c.rules.add(hints...)
		if len(path) == 0 {
			c.objectNames = append(c.objectNames, texts[objectName]...)
		}
	}
	for _, child := range sorted(s.Properties) {
		p := s.Properties[child]
		c.addSchema(&p, append(slices.Clip(path), child)...)
	}
	if s.Items != nil {
		c.addSchema(s.Items, path...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		c.addSchema(s.AdditionalProperties.Structural, path...)
	}
}

// hints are those of expressions, or of bounds.
type hints struct {
	all   []hint
	known map[string]bool
}

// add adds hints with values, unless an equal one is known.
func (hs *hints) add(all ...hint) {
	if hs.known == nil {
		hs.known = map[string]bool{}
	}
	for _, h := range all {
		if key := fmt.Sprint(h); !hs.known[key] && len(h.values)+len(h.sizes) > 0 {
			hs.known[key] = true
			hs.all = append(hs.all, h)
		}
	}
}

// expressions returns the expressions of a policy, with those of its variables in place of these, or of the match conditions of
// webhooks.
func expressions(object map[string]any) (all []string) {
	for _, value := range fields(object, "expression") {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
	}
	variables, _, _ := unstructured.NestedSlice(object, "spec", "variables")
	for _, v := range slices.Backward(variables) { // one may refer to those before it
		variable, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(variable, "name")
		expression, _, _ := unstructured.NestedString(variable, "expression")
		of := regexp.MustCompile(`(^|[^.\w])variables\.` + regexp.QuoteMeta(name) + `\b`)
		for i, text := range all {
			if len(text) < 10_000 {
				all[i] = of.ReplaceAllString(text, "${1}("+strings.ReplaceAll(expression, "$", "$$")+"\n)")
			}
		}
	}
	return all
}

// fields returns the values of all fields with a name.
func fields(value any, name string) (all []any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sorted(v) {
			if key == name {
				all = append(all, v[key])
			}
			all = append(all, fields(v[key], name)...)
		}
	case []any:
		for _, item := range v {
			all = append(all, fields(item, name)...)
		}
	}
	return all
}
