package crdfuzz

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/cel"
)

// rules adds x-kubernetes-validations.
func (m maker) rules(s object) {
	if !m.rarely(4) {
		return
	}
	var all []any
	for range 1 + m.Intn(2) {
		all = append(all, m.rule(s))
	}
	s["x-kubernetes-validations"] = all
}

// rule is a rule that suits a schema, with all that it may have.
func (m maker) rule(s object) object {
	r := object{"rule": m.about(s, "self", 2)}
	if m.rarely(4) {
		r["rule"] = m.transition(s)
	}
	if m.rarely(10) {
		r["optionalOldSelf"] = m.often(5)
		r["rule"] = one(m, "!oldSelf.hasValue() || oldSelf.value() == self", "oldSelf.hasValue() ? self == oldSelf.value() : true", "oldSelf.optMap(o, o == self).orValue(true)")
	}
	if m.rarely(3) {
		r["message"] = m.word("no never wrong")
	}
	if r["message"] != nil {
		r["message"] = fmt.Sprintf("%s: %s", r["message"], r["rule"]) // so that one sees which rule it was
	}
	if m.rarely(3) && r["optionalOldSelf"] != nil {
		r["messageExpression"] = strconv.Quote(fmt.Sprintf("computed: %s", r["rule"])) // so that one sees which rule it was
	} else if m.rarely(3) {
		r["messageExpression"] = one(m, "'not ' + string(self)", "'of size ' + string(self.size())", "'it is ' + (true ? 'wrong' : '')", "''", "'a\\nb'", "string(1 / 0)", "self", "'  '",
			"has(self.a) ? 'a' : 'no a'", "string(self == self)", "'x'.replace('x', '')", "self == oldSelf ? 'same' : 'other'")
	}
	if m.rarely(4) {
		r["reason"] = m.word("FieldValueInvalid FieldValueForbidden FieldValueRequired FieldValueDuplicate FieldValueInvalid FieldValueRequired Oops")
	}
	if m.rarely(5) {
		r["fieldPath"] = one(m, "."+m.nameIn(s), "['"+m.nameIn(s)+"']", ".a.b", ".c", ".a[0]", "b")
	}
	return r
}

// transition is a rule about the old value too.
func (m maker) transition(s object) string {
	all := []string{"self == oldSelf", "self == oldSelf || true", "!(self != oldSelf)", m.about(s, "oldSelf", 1) + " || self == oldSelf"}
	switch s["type"] {
	case "integer", "number":
		all = append(all, "self >= oldSelf", "self > oldSelf", "self - oldSelf < 3")
	case "array":
		all = append(all, "oldSelf.all(x, x in self)", "self.size() >= oldSelf.size()", "self.all(x, oldSelf.exists(y, x == y))")
	case "string":
		all = append(all, "self.startsWith(oldSelf)", "self.size() >= oldSelf.size()")
	case "object":
		name := m.member(s)
		all = append(all, fmt.Sprintf("has(self.%s) == has(oldSelf.%s)", name, name), fmt.Sprintf("self.%s == oldSelf.%s", name, name))
	}
	return one(m, all...)
}

// member is the name of a property as CEL writes it.
func (m maker) member(s object) string {
	name, _ := cel.Escape(m.nameIn(s))
	return name
}

// about is an expression that is true or false of a value, as the value is mostly there
// in a term.
func (m maker) about(s object, term string, depth int) string {
	if m.rarely(40) {
		return one(m, "true", "false", "1 / 0 == 1", term+" == "+term, "dyn("+term+") == 1", term+" != null")
	}
	if m.rarely(15) && depth > 0 {
		return "(" + m.about(s, term, depth-1) + one(m, " || ", " && ") + m.about(s, term, depth-1) + ")"
	}
	if m.rarely(20) && depth > 0 {
		return "!(" + m.about(s, term, depth-1) + ")"
	}
	f := func(of ...string) string { return strings.ReplaceAll(one(m, of...), "X", term) }
	if s["x-kubernetes-int-or-string"] == true {
		return f("type(X) == int ? X > 0 : X != 'a'", "string(X) != '5'", "X != 1", "X == '50%' || X == 5", "type(X) == string", "int(X) > 0", "X > 0")
	}
	switch s["type"] {
	case "string":
		if rule := m.aboutFormat(text(s["format"]), term); rule != "" && m.often(6) {
			return rule
		}
		return f("X != 'a'", "X.size() < 4", "X.startsWith('a')", "X.matches('^[a-x]*$')", "X.contains('b') || X == ''", "int(X) < 6", "X in ['a', 'b', 'abc']",
			"X.lowerAscii() == X", "X.find('[0-9]+') == ''", "X.split('-').size() < 2", "X.charAt(0) == 'a'", "X < 'b'", "X.trim() == X", "!isQuantity(X) || quantity(X).isLessThan(quantity('6'))",
			"isURL(X) || X != 'x'", "url(X).getHost() == ''", "X.indexOf('b') < 2", "size(X) > 0", "X.upperAscii() != X", "duration(X) > duration('1m')", "X.substring(0, 1) == 'a'",
			"X.matches('[')", "!format.dns1123Label().validate(X).hasValue()", "isSemver(X) ? semver(X).major() > 1 : true", "ip.isCanonical(X)", "!isIP(X)", "X.format(['a']) == X", "optional.of(X).hasValue()")
	case "integer":
		return f("X > 0", "X % 2 == 0", "10 / X > 1", "X + 9223372036854775807 > 0", "X in [1, 2, 3, 5]", "X != 1", "double(X) < 4.5", "string(X) != '3'", "X <= 5", "-X < 3", "X * X >= X", "uint(X) > 0u", "X < 2.5", "math.abs(X) < 5")
	case "number":
		return f("X > 0.5", "X != 1.0", "double(int(X)) == X", "X in [0.5, 1.0, 2.0]", "1.0 / X > 0.3", "X < 3", "string(X) != '1'", "math.isNaN(X) || X <= 5.0", "X >= 0")
	case "boolean":
		return f("X", "!X || true", "X == true", "X != false", "string(X) == 'true'")
	case "array":
		items, _ := s["items"].(object)
		x := string(rune('p' + depth))
		all := []string{"X.size() < 3", "size(X) > 0", "X[0] == X[0]", "X == X", "X.isSorted()", "X.sum() < 10", "X.max() != X.min()", "X.distinct().size() == X.size()", "X.indexOf(X[0]) == 0", "X.flatten() == X", "X + X != X"}
		if depth > 0 {
			about := m.about(items, x, depth-1)
			all = append(all, "X.all("+x+", "+about+")", "X.exists("+x+", "+about+")", "X.exists_one("+x+", "+about+")", "X.filter("+x+", "+about+").size() > 0", "X.map("+x+", "+x+").size() < 3",
				"X.all("+x+", X.exists_one(y, y == "+x+"))", "X.all(i, "+x+", i < 2 || "+about+")", "X[0] == X[1] || X.all("+x+", "+about+")")
		}
		return f(all...)
	}
	if values, ok := s["additionalProperties"].(object); ok {
		all := []string{"X.size() < 3", "'a' in X", "!('b' in X)", "X.all(k, k.size() < 4)", "X.exists(k, k == 'a')", "has(X.a)", "X == X", "X['a'] == X['b']"}
		if depth > 0 {
			all = append(all, "X.all(k, "+m.about(values, "X[k]", depth-1)+")", "!('a' in X) || "+m.about(values, "X['a']", depth-1), "X.all(k, v, "+m.about(values, "v", depth-1)+")")
		}
		return f(all...)
	}
	if s["x-kubernetes-embedded-resource"] == true && m.rarely(2) {
		return f("X.metadata.name != 'b'", "X.kind == 'Pod'", "has(X.metadata) && has(X.metadata.name)", "X.apiVersion != 'v2'", "X.metadata.generateName == 'a'")
	}
	properties, _ := s["properties"].(object)
	name := m.nameIn(s)
	p, ok := properties[name].(object)
	escaped, _ := cel.Escape(name)
	at := term + "." + escaped
	if !ok || depth == 0 {
		return one(m, "has("+at+")", "!has("+at+")", at+" == "+at, term+".metadata.name != 'x'", "size("+term+") > 0", "type("+term+") == string")
	}
	about := m.about(p, at, depth-1)
	return one(m, "!has("+at+") || "+about, "!has("+at+") || "+about, "has("+at+") && "+about, about, term+".?"+escaped+".hasValue() || true", "has("+at+")")
}

func (m maker) aboutFormat(format, term string) string {
	switch format {
	case "date-time", "date":
		return term + one(m, " < timestamp('2020-06-01T00:00:00Z')", ".getFullYear() == 2020", " - duration('1h') < timestamp('2020-01-01T00:00:00Z')")
	case "duration":
		return term + one(m, " < duration('2h')", ".getSeconds() > 60", " == duration('90s')")
	case "byte":
		return one(m, term+" == b'abc'", "size("+term+") < 3", "string("+term+") != 'a'")
	}
	return ""
}
