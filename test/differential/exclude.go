package differential

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// ranges leaves out what is said of the range of a number, and of bounds that are out of it.
func (c *Comparison) ranges() bool {
	out := map[string]bool{}
	var defaults []string
	for _, text := range c.Offline.Causes {
		if m := outOfRange.FindStringSubmatch(text); m != nil {
			out[m[2]] = m[1] != "Checked"
			// With such an error, the rules of a default are not run.
			if c.What == "definition" {
				defaults = append(defaults, pathOf(text))
			}
		}
	}
	ofDefault := func(text string) bool {
		path := pathOf(text)
		return slices.ContainsFunc(defaults, func(d string) bool {
			return path == d || strings.HasPrefix(path, d+".") || strings.HasPrefix(path, d+"[")
		})
	}
	return c.withoutBlocking(func(text string) bool {
		if outOfRange.MatchString(text) || ofDefault(text) {
			return true
		}
		m := outOfBounds.FindStringSubmatch(text)
		return m != nil && out[m[1]+m[2]]
	})
}

var (
	outOfRange  = regexp.MustCompile(`: (Checked|MultipleOf|Maximum boundary|Minimum boundary) value must be of type (?:integer|number) .* in (.*)$`)
	outOfBounds = regexp.MustCompile(`: (?:(\S*) in body should be (?:less than|greater than|a multiple of) |factor MultipleOf declared for (\S*) must be positive)`)
)

// formatsOfNames leaves out what is said of the formats of names. In a composition they may
// change what is said of the whole, and so nothing else is compared, nor of a definition what is
// said of defaults.
func (c *Comparison) formatsOfNames() bool {
	isName := func(s *apiextensionsv1.JSONSchemaProps) bool { return nameFormat.MatchString(s.Format) }
	named, composed := false, false
	c.eachSchema(func(s *apiextensionsv1.JSONSchemaProps) {
		named = named || isName(s)
		for _, p := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
			composed = composed || within(&p, isName)
		}
		composed = composed || within(s.Not, isName)
	})
	if composed && c.What != "definition" {
		c.Server = c.Offline
		return true
	}
	return c.withoutBlocking(func(text string) bool {
		_, format, ok := strings.Cut(text, " in body must be of type ")
		return ok && (nameFormat.MatchString(format) || named && format == `string: "array"`) || composed && strings.HasSuffix(pathOf(text), ".default") && !outOfRange.MatchString(text)
	})
}

var nameFormat = regexp.MustCompile(`^k8s-(short|long)-name\b`)

// costly leaves out what the server alone says about the estimated cost of rules.
func (c *Comparison) costly() bool {
	if c.What != "definition" {
		return false
	}
	causes := slices.DeleteFunc(slices.Clone(c.Server.Causes), func(text string) bool {
		return strings.Contains(text, "estimated rule cost") && !slices.Contains(c.Offline.Causes, text)
	})
	if len(causes) == len(c.Server.Causes) {
		return false
	}
	c.Server.Causes, c.Server.Message, c.Offline.Message = causes, "", ""
	if len(causes) == 0 {
		c.Server.Code, c.Server.Reason = 201, ""
	}
	return true
}

// unknownFunctions leaves out what the server alone says of rules with functions that it
// does not know yet: what it says beside that, and what is said offline, is of the same
// rule.
func (c *Comparison) unknownFunctions() bool {
	if c.What != "definition" {
		return false
	}
	rules := map[string]bool{}
	for _, text := range c.Server.Causes {
		for _, m := range undeclared.FindAllStringSubmatch(text, -1) {
			if functions[m[1]] > c.Minor {
				rules[ruleOf(text)] = true
			}
		}
	}
	if len(rules) == 0 {
		return false
	}
	for _, o := range []*Outcome{&c.Server, &c.Offline} {
		o.Causes = slices.DeleteFunc(slices.Clone(o.Causes), func(text string) bool {
			return rules[ruleOf(text)] || strings.Contains(text, "estimated rule cost total") // to which they contribute
		})
		o.Message = ""
		if len(o.Causes) == 0 {
			o.Code, o.Reason = 201, ""
		}
	}
	return true
}

// functions are those that rules of definitions may have from a minor release on.
var functions = map[string]int{"semver": 34, "isSemver": 34, "flatten": 35, "distinct": 35, "sort": 35, "sortBy": 35, "slice": 35, "range": 35, "reverse": 35}

// undeclared is a function that is not known.
var undeclared = regexp.MustCompile(`undeclared reference to '(\w+)'`)

// ruleOf is the path of the rule that a cause is about: of its rule, or of its
// messageExpression.
func ruleOf(cause string) string {
	path := pathOf(cause)
	return path[:max(0, strings.LastIndex(path, "."))]
}

// pathOf is the path that a cause begins with.
func pathOf(cause string) string {
	path, _, _ := strings.Cut(cause, ": ")
	return path
}

// almostWhole reports whether there is a number in the request that is almost whole, or almost
// a multiple of what a schema asks for.
func (c *Comparison) almostWhole() bool {
	factors := []float64{1}
	c.eachSchema(func(s *apiextensionsv1.JSONSchemaProps) {
		if s.MultipleOf != nil {
			factors = append(factors, *s.MultipleOf)
		}
	})
	var almost func(v any) bool
	almost = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			return slices.ContainsFunc(slices.Collect(maps.Values(v)), almost)
		case []any:
			return slices.ContainsFunc(v, almost)
		case float64:
			return slices.ContainsFunc(factors, func(factor float64) bool {
				times := v / factor
				whole := math.Round(times)
				return times != whole && math.Abs(times-whole) < 1e-9*math.Abs(whole)
			})
		}
		return false
	}
	for _, text := range [][]byte{c.Body, c.Old} {
		var object any
		if yaml.Unmarshal(text, &object) == nil && almost(object) {
			return true
		}
	}
	return false
}

// rewrite rewrites what is said offline, if that changes something.
func (c *Comparison) rewrite(older func(minor int, text string) string) (changed bool) {
	c.Offline.Causes = slices.Clone(c.Offline.Causes)
	for i, text := range c.Offline.Causes {
		c.Offline.Causes[i] = older(c.Minor, text)
		changed = changed || c.Offline.Causes[i] != text
	}
	c.Offline.Message = older(c.Minor, c.Offline.Message)
	return changed
}

var (
	// literal is a text in an expression.
	literal = regexp.MustCompile(`'([^']{2,})'`)
	// truth is an expression that says true or false.
	truth = regexp.MustCompile(`^string\(.* [!=]= .*\)$`)
)

// leaveOut leaves out what some rules say.
func (c *Comparison) leaveOut(some func(*apiextensionsv1.JSONSchemaProps, *apiextensionsv1.ValidationRule) bool) (changed bool) {
	var said []string
	c.eachSchema(func(s *apiextensionsv1.JSONSchemaProps) {
		for i := range s.XValidations {
			rule := &s.XValidations[i]
			if !some(s, rule) {
				continue
			}
			said = append(said, strings.TrimSpace(rule.Rule))
			if rule.Message != "" {
				said = append(said, ": "+rule.Message)
			}
			for _, m := range literal.FindAllStringSubmatch(rule.MessageExpression, -1) {
				said = append(said, ": "+m[1]) // it begins, or ends, like that
			}
			if truth.MatchString(rule.MessageExpression) {
				said = append(said, ": true", ": false")
			}
			if rule.Reason != nil && *rule.Reason == apiextensionsv1.FieldValueDuplicate {
				said = append(said, "FieldValueDuplicate: Duplicate value") // which is all that it says
				if c.Minor < 35 {
					said = append(said, "FieldValueDuplicate: Duplicate value: "+strconv.Quote(s.Type))
				}
			}
		}
	})
	return c.without(func(text string) bool {
		return slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(text, s) || strings.Contains(text, s+" ") })
	})
}

// without leaves out some causes and warnings, on both sides. Where they alone say that the
// object is invalid, nothing is left to compare it with.
func (c *Comparison) without(by func(text string) bool) (changed bool) {
	refused := false
	for _, o := range []*Outcome{&c.Server, &c.Offline} {
		causes := slices.DeleteFunc(slices.Clone(o.Causes), by)
		warnings := slices.DeleteFunc(slices.Clone(o.Warnings), by)
		changed = changed || len(causes) < len(o.Causes) || len(warnings) < len(o.Warnings)
		refused = refused || len(o.Causes) > 0 && len(causes) == 0
		o.Causes, o.Warnings, o.Message = causes, warnings, ""
	}
	if refused {
		for _, o := range []*Outcome{&c.Server, &c.Offline} {
			o.Code, o.Reason, o.Object, o.Stored = 0, "", nil, nil
		}
	}
	return changed
}

// withoutBlocking leaves out some causes and warnings, on both sides, and the results if
// these alone have kept the rules from being run on one of them.
func (c *Comparison) withoutBlocking(by func(text string) bool) bool {
	if !c.without(by) {
		return false
	}
	if c.diff() == "" {
		return true
	}
	ran, kept := &c.Server, &c.Offline
	if ran.rulesWereNotRun() {
		ran, kept = kept, ran
	}
	if ran.rulesWereNotRun() {
		return true
	}
	if rulesWereRun(ran, kept); len(kept.Causes) == 0 {
		for _, o := range []*Outcome{ran, kept} {
			o.Code, o.Reason, o.Object, o.Stored = 0, "", nil, nil
		}
	}
	return true
}

// eachSchema calls f with each schema of the definitions, and each that is in it.
func (c *Comparison) eachSchema(f func(*apiextensionsv1.JSONSchemaProps)) {
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{c.Suite.CRD, c.Suite.Before} {
		if crd == nil {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Schema != nil {
				within(v.Schema.OpenAPIV3Schema, func(s *apiextensionsv1.JSONSchemaProps) bool {
					f(s)
					return false
				})
			}
		}
	}
}

// within reports whether a condition holds for a schema or for one that is in it.
func within(s *apiextensionsv1.JSONSchemaProps, is func(*apiextensionsv1.JSONSchemaProps) bool) bool {
	if s == nil {
		return false
	}
	if is(s) || s.Items != nil && within(s.Items.Schema, is) || s.AdditionalProperties != nil && within(s.AdditionalProperties.Schema, is) {
		return true
	}
	for _, p := range s.Properties {
		if within(&p, is) {
			return true
		}
	}
	for _, p := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		if within(&p, is) {
			return true
		}
	}
	return within(s.Not, is)
}

// comparing is a rule that may compare sets.
var comparing = regexp.MustCompile(`==|!=| in |indexOf|distinct|\+`)

// isOddSet reports whether a schema is of a set whose members are one thing in JSON and another
// to a rule, or cannot be members of a set in Go.
func isOddSet(s *apiextensionsv1.JSONSchemaProps) bool {
	if s.XListType == nil || *s.XListType != "set" || s.Items == nil || s.Items.Schema == nil {
		return false
	}
	items := s.Items.Schema
	return !items.XIntOrString && items.Type != "string" && items.Type != "integer" && items.Type != "boolean" || items.Format != ""
}

// blocking are the types of errors that keep the rules from being run.
var blocking = regexp.MustCompile(`: FieldValue(NotSupported|Required|TooLong|TooMany|TypeInvalid): `)

const notRun = "some validation rules were not checked because"

func (o *Outcome) rulesWereNotRun() bool {
	return slices.ContainsFunc(o.Causes, func(text string) bool { return strings.Contains(text, notRun) })
}

// rulesWereRun leaves out the results of rules that were run on one side, and not on the
// other: the rest has to be the same.
func rulesWereRun(ran, kept *Outcome) {
	causes := slices.DeleteFunc(slices.Clone(kept.Causes), func(text string) bool { return strings.Contains(text, notRun) })
	if len(causes) == len(kept.Causes) || slices.ContainsFunc(causes, blocking.MatchString) {
		return
	}
	kept.Causes = causes
	ran.Causes = slices.DeleteFunc(slices.Clone(ran.Causes), func(text string) bool { return !slices.Contains(causes, text) })
	ran.Warnings = slices.DeleteFunc(slices.Clone(ran.Warnings), func(text string) bool { return !slices.Contains(kept.Warnings, text) })
	ran.Message, kept.Message = "", ""
}
