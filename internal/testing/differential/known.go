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

// known are the differences that come from the version of the server, beside libraries of
// 1.37, which is what package schema follows. Each is looked for on servers before the
// release since, and matched as narrowly as can be: older rewrites what 1.37 says into what
// such a server says, or only what certain rules say is not compared; nothing else may
// differ. The oldest are first: those after them find the texts of the youngest such server.
var known = []difference{
	{
		name:  "words of 1.33",
		since: 34,
		cause: "1.34 has not the name of the field in some messages, and no message where a schema is required, and writes 1 item and 1 byte " +
			"(apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, apimachinery/pkg/util/validation/field/errors.go)",
		older: func(_ int, text string) string {
			text = rewrite(text, `(\.(message|fieldPath): (?:FieldValueInvalid: )?Invalid value: "(?:[^"\\]|\\.)*": )(must (?:be non-empty if specified|not contain line breaks|be a valid path))$`, func(m []string) string {
				return m[1] + m[2] + " " + m[3]
			})
			text = rewrite(text, `(schema\.openAPIV3Schema: (?:FieldValueRequired: )?Required value)$`, func(m []string) string { return m[1] + ": schemas are required" })
			text = rewrite(text, `(selectableFields: (?:FieldValueInvalid: )?Invalid value: "": )(may only be set when)`, func(m []string) string { return m[1] + "selectableFields " + m[2] })
			return rewrite(text, `((?:at most|more than) 1 (?:item|byte))$`, func(m []string) string { return m[1] + "s" })
		},
	},
	{
		name:  "required fields",
		since: 34,
		cause: "1.34 says no more of some fields than that they are required " +
			"(apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go, apiserver/pkg/util/webhook/validation.go)",
		alike: sameRequired,
	},
	{
		name:  "values in errors",
		since: 34,
		cause: "1.34 writes values in errors as JSON, 1.33 objects and lists as Go does, which are not compared, and null as text, some times and numbers otherwise " +
			"(apimachinery/pkg/util/validation/field/errors.go, ErrorBody)",
		alike: sameValue,
	},
	{
		name:  "patches that cannot be decoded",
		since: 34,
		cause: "1.34 takes a patch of a webhook that cannot be decoded for a failed call, which the failure policy decides of; 1.33 always fails " +
			"(apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go, callAttrMutatingHook)",
		older: func(_ int, text string) string {
			return rewrite(text, `failed calling webhook "[^"]*": received undecodable patch in webhook response: `, func([]string) string { return "" })
		},
	},
	{
		name:  "null in rules",
		since: 34,
		cause: "a rule of 1.33 takes no object for equal to another if it has a property that is null (apiserver/pkg/cel/common/values.go, unstructuredMap.Equal)",
		rule: func(s *apiextensionsv1.JSONSchemaProps, r *apiextensionsv1.ValidationRule) bool {
			return comparing.MatchString(r.Rule) && within(s, func(s *apiextensionsv1.JSONSchemaProps) bool { return s.Nullable })
		},
	},
	{
		name:  "values of rules",
		since: 35,
		cause: "1.35 writes the value of a rule that fails, if it is a scalar, where 1.34 writes its type; it is not compared " +
			"(apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, validateExpressions)",
		alike: sameRule,
	},
	{
		name:  "functions of rules",
		since: 35,
		cause: "semver came with 1.33, and the functions for lists (flatten, distinct) with 1.34; a definition may have them from the next release on " +
			"(apiserver/pkg/cel/environment/base.go)",
		partly: (*Comparison).unknownFunctions,
	},
	{
		name:  "formats of names",
		since: 35,
		cause: "k8s-short-name and k8s-long-name came with 1.34, and are formats to a server from 1.35 on, which takes a list for a text with a format; " +
			"where one is in a composition, nothing is compared (apiextensions-apiserver/pkg/apiserver/validation/formats.go, kube-openapi/pkg/validation/validate/type.go)",
		partly: (*Comparison).formatsOfNames,
	},
	{
		name:  "types with a format",
		since: 36,
		cause: "1.36 knows the formats of numbers, and 1.35 those of names, and names the format where 1.34 names the type, of what is of another type " +
			"(apiextensions-apiserver/pkg/apiserver/validation/formats.go, kube-openapi/pkg/validation/validate/type.go)",
		alike: sameType,
	},
	{
		name:  "ranges of numbers",
		since: 36,
		cause: "1.36 wants integers and numbers, and what a schema compares them with, to be in the range of their type and format; " +
			"1.35 does not, and compares integers with what is whole of a bound (apiextensions-apiserver/pkg/apiserver/validation/formats.go, kube-openapi/pkg/validation/validate/schema.go, numberValidator)",
		partly: (*Comparison).ranges,
	},
	{
		name:  "owner references",
		since: 37,
		cause: "1.37 says Required where 1.36 says Invalid of an apiVersion, kind, name or uid that is empty, and gives the index " +
			"(apimachinery/pkg/api/validation/objectmeta.go, validateOwnerReference); a field that is required keeps the rules from being run",
		older: func(minor int, text string) string {
			text = rewrite(text, `ownerReferences\[\d+\]\.(\w+): (FieldValueRequired: )?Required value: must not be empty`, func(m []string) string {
				what := ""
				if m[1] == "apiVersion" {
					what = "version "
				} else if minor < 34 {
					what = m[1] + " "
				}
				return "ownerReferences." + m[1] + ": " + invalidIf(m[2]) + `Invalid value: "": ` + what + "must not be empty"
			})
			text = strings.ReplaceAll(text, "must be <group>/<version> or <version>", "version must not be empty")
			return rewrite(text, `ownerReferences\[\d+\](\.apiVersion: .*version must not be empty|: .*is disallowed from being an owner)`, func(m []string) string {
				return "ownerReferences" + m[1]
			})
		},
	},
	{
		name:  "operations of managed fields",
		since: 37,
		cause: "1.37 says Required or Unsupported where 1.36 says Invalid of an operation in managedFields, which are looked at in embedded resources " +
			"(apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateManagedFields); both keep the rules from being run",
		older: func(_ int, text string) string {
			text = rewrite(text, `(managedFields\[\d+\]\.operation: )(FieldValueRequired: )?Required value: must not be empty`, func(m []string) string {
				return m[1] + invalidIf(m[2]) + "Invalid value: \"\": must be `Apply` or `Update`"
			})
			return rewrite(text, `(managedFields\[\d+\]\.operation: )(FieldValueNotSupported: )?Unsupported value: (".*?"): supported values: "Apply", "Update"`, func(m []string) string {
				return m[1] + invalidIf(m[2]) + "Invalid value: " + m[3] + ": must be `Apply` or `Update`"
			})
		},
	},
	{
		name:  "the value of an optional oldSelf",
		since: 37,
		cause: "with optionalOldSelf, 1.36 has forgotten the schema of the value of oldSelf, and takes null, list types and formats for what they are in JSON " +
			"(cel-go 0.26 beside 0.29, interpreter/attributes.go, applyQualifiers)",
		rule: func(_ *apiextensionsv1.JSONSchemaProps, r *apiextensionsv1.ValidationRule) bool {
			return r.OptionalOldSelf != nil && *r.OptionalOldSelf && strings.Contains(r.Rule, "oldSelf")
		},
	},
	{
		name:  "sets in rules",
		since: 37,
		cause: "a rule of 1.36 compares the members of sets as they are in JSON, where 1 is not the double 1.0 nor text a timestamp, and fails at members that are lists or maps " +
			"(apiserver/pkg/cel/common/valuesunstructured.go, unstructuredSetList)",
		rule: func(s *apiextensionsv1.JSONSchemaProps, r *apiextensionsv1.ValidationRule) bool {
			return comparing.MatchString(r.Rule) && within(s, isOddSet)
		},
	},
	{
		name:  "numbers that are almost whole",
		since: 37,
		cause: "1.37 takes a number for whole whose fraction is less than a billionth of it, in integer and multipleOf, and 1.36 mostly does not where it is negative; " +
			"nothing else of such a request is compared (go-openapi/swag 0.23 beside 0.27, IsFloat64AJSONInteger)",
		whole: (*Comparison).almostWhole,
	},
	{
		name:   "the estimated cost of rules",
		since:  37,
		cause:  "1.37 estimates the cost of some rules lower (cel-go 0.26 beside 0.29, checker/cost.go)",
		partly: (*Comparison).costly,
	},
}

// ranges leaves out what is said of the range of a number, and of bounds that are out of it.
func (c *Comparison) ranges() bool {
	out, defaults := map[string]bool{}, map[string]bool{}
	for _, text := range c.Offline.Causes {
		if m := outOfRange.FindStringSubmatch(text); m != nil {
			out[m[2]] = m[1] != "Checked"
			// With such an error, the rules of a default are not run.
			defaults[pathOf(text)] = c.What == "definition"
		}
	}
	return c.withoutBlocking(func(text string) bool {
		if outOfRange.MatchString(text) || defaults[pathOf(text)] {
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
		return ok && (nameFormat.MatchString(format) || named && format == `string: "array"`) || composed && strings.HasSuffix(pathOf(text), ".default")
	})
}

var nameFormat = regexp.MustCompile(`^k8s-(short|long)-name\b`)

// rewrite rewrites each match of a pattern.
func rewrite(text, pattern string, to func(match []string) string) string {
	re := regexp.MustCompile(pattern)
	return re.ReplaceAllStringFunc(text, func(match string) string { return to(re.FindStringSubmatch(match)) })
}

// invalidIf is the type of an error where one is there: it is in causes, not in messages.
func invalidIf(kind string) string {
	if kind == "" {
		return ""
	}
	return "FieldValueInvalid: "
}

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

// difference is one that is known, and how it is mended.
type difference struct {
	name, cause string
	since       int // the minor release from which on the server does as package schema
	// One of these.
	older  func(minor int, text string) string
	alike  func(server, offline string) bool // whether both say the same
	rule   func(of *apiextensionsv1.JSONSchemaProps, rule *apiextensionsv1.ValidationRule) bool
	whole  func(c *Comparison) bool // of such a request, nothing is compared
	partly func(c *Comparison) bool // leaves something out, if it is there
}

// Same says whether a text of a server of release 1.minor, such as a message, says the same as
// one of package schema or offline, if not to the letter: by what is known of its words.
func Same(minor int, server, offline string) bool {
	for _, k := range known {
		if minor < k.since && k.older != nil {
			offline = k.older(minor, offline)
		}
	}
	return server == offline || slices.ContainsFunc(known, func(k difference) bool {
		return minor < k.since && k.alike != nil && k.alike(server, offline)
	})
}

// explain returns the names of the known differences that are all there is, if that is so:
// of one, if it is enough.
func explain(c Comparison) (names []string) {
	known := slices.DeleteFunc(slices.Clone(known), func(k difference) bool { return c.Minor >= k.since })
	for _, k := range known {
		if one := c; k.mend(&one) && one.diff() == "" {
			return []string{k.name}
		}
	}
	for _, k := range known {
		if k.mend(&c) {
			names = append(names, k.name)
		}
	}
	if c.diff() != "" {
		return nil
	}
	return names
}

// mend takes a difference away, if it is there.
func (k difference) mend(c *Comparison) bool {
	switch {
	case k.older != nil:
		if !c.rewrite(k.older) {
			return false
		}
		if c.diff() != "" {
			rulesWereRun(&c.Server, &c.Offline)
		}
		return true
	case k.alike != nil:
		return c.likewise(k.alike)
	case k.rule != nil:
		return c.leaveOut(k.rule)
	case k.whole != nil:
		if !k.whole(c) {
			return false
		}
		c.Server = c.Offline
		return true
	default:
		return k.partly(c)
	}
}

// almostWhole says whether there is a number in the request that is almost whole, or almost
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

// withoutBlocking leaves out some causes and warnings, on both sides, and what comes of it if
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

// within says whether something is so of a schema or of one that is in it.
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

// isOddSet says whether a schema is of a set whose members are one thing in JSON and another
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

// rulesWereRun leaves out what comes of it that the rules were run on one side, and kept from it
// on the other: the rest has to be the same.
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
