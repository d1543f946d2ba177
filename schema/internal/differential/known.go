package differential

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// known are the differences that come from the version of the server, 1.36, beside
// libraries of 1.37, which is what package schema follows. Each is matched as narrowly as
// can be: older rewrites what 1.37 says into what 1.36 says, or only what certain rules say
// is not compared; nothing else may differ.
var known = []difference{
	{
		name: "owner references",
		cause: "1.37 says Required where 1.36 says Invalid of an apiVersion, kind, name or uid that is empty, and gives the index " +
			"(apimachinery/pkg/api/validation/objectmeta.go, validateOwnerReference); a field that is required keeps the rules from being run",
		older: func(text string) string {
			text = rewrite(text, `ownerReferences\[\d+\]\.(\w+): (FieldValueRequired: )?Required value: must not be empty`, func(m []string) string {
				version := ""
				if m[1] == "apiVersion" {
					version = "version "
				}
				return "ownerReferences." + m[1] + ": " + invalidIf(m[2]) + `Invalid value: "": ` + version + "must not be empty"
			})
			text = strings.ReplaceAll(text, "must be <group>/<version> or <version>", "version must not be empty")
			return rewrite(text, `ownerReferences\[\d+\](\.apiVersion: .*version must not be empty|: .*is disallowed from being an owner)`, func(m []string) string {
				return "ownerReferences" + m[1]
			})
		},
	},
	{
		name: "operations of managed fields",
		cause: "1.37 says Required or Unsupported where 1.36 says Invalid of an operation in managedFields, which are looked at in embedded resources " +
			"(apimachinery/pkg/apis/meta/v1/validation/validation.go, ValidateManagedFields); both keep the rules from being run",
		older: func(text string) string {
			text = rewrite(text, `(managedFields\[\d+\]\.operation: )(FieldValueRequired: )?Required value: must not be empty`, func(m []string) string {
				return m[1] + invalidIf(m[2]) + "Invalid value: \"\": must be `Apply` or `Update`"
			})
			return rewrite(text, `(managedFields\[\d+\]\.operation: )(FieldValueNotSupported: )?Unsupported value: (".*?"): supported values: "Apply", "Update"`, func(m []string) string {
				return m[1] + invalidIf(m[2]) + "Invalid value: " + m[3] + ": must be `Apply` or `Update`"
			})
		},
	},
	{
		name: "the value of an optional oldSelf",
		cause: "with optionalOldSelf, 1.36 has forgotten the schema of the value of oldSelf, and takes null, list types and formats for what they are in JSON " +
			"(cel-go 0.26 beside 0.29, interpreter/attributes.go, applyQualifiers)",
		rule: func(_ *apiextensionsv1.JSONSchemaProps, r *apiextensionsv1.ValidationRule) bool {
			return r.OptionalOldSelf != nil && *r.OptionalOldSelf && strings.Contains(r.Rule, "oldSelf")
		},
	},
	{
		name: "sets in rules",
		cause: "a rule of 1.36 compares the members of sets as they are in JSON, where 1 is not the double 1.0 nor text a timestamp, and fails at members that are lists or maps " +
			"(apiserver/pkg/cel/common/valuesunstructured.go, unstructuredSetList)",
		rule: func(s *apiextensionsv1.JSONSchemaProps, r *apiextensionsv1.ValidationRule) bool {
			return comparing.MatchString(r.Rule) && within(s, isOddSet)
		},
	},
	{
		name: "numbers that are almost whole",
		cause: "1.37 takes a number for whole whose fraction is less than a billionth of it, in integer and multipleOf, and 1.36 mostly does not where it is negative; " +
			"nothing else of such a request is compared (go-openapi/swag 0.23 beside 0.27, IsFloat64AJSONInteger)",
		whole: (*Comparison).almostWhole,
	},
	{
		name:   "the estimated cost of rules",
		cause:  "1.37 estimates the cost of some rules lower (cel-go 0.26 beside 0.29, checker/cost.go)",
		partly: (*Comparison).costly,
	},
}

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

// difference is one that is known, and how it is mended.
type difference struct {
	name, cause string
	// One of these.
	older  func(text string) string
	rule   func(of *apiextensionsv1.JSONSchemaProps, rule *apiextensionsv1.ValidationRule) bool
	whole  func(c *Comparison) bool // of such a request, nothing is compared
	partly func(c *Comparison) bool // leaves something out, if it is there
}

// explain returns the names of the known differences that are all there is, if that is so:
// of one, if it is enough.
func explain(c Comparison) (names []string) {
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
			c.rulesWereRun()
		}
		return true
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
func (c *Comparison) rewrite(older func(text string) string) (changed bool) {
	c.Offline.Causes = slices.Clone(c.Offline.Causes)
	for i, text := range c.Offline.Causes {
		c.Offline.Causes[i] = older(text)
		changed = changed || c.Offline.Causes[i] != text
	}
	c.Offline.Message = older(c.Offline.Message)
	return changed
}

// leaveOut leaves out what some rules say. Where they alone say that the object is
// invalid, nothing is left to compare it with.
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
			if rule.Reason != nil && *rule.Reason == apiextensionsv1.FieldValueDuplicate {
				said = append(said, "FieldValueDuplicate: Duplicate value") // which is all that it says
			}
		}
	})
	by := func(text string) bool {
		return slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(text, s) || strings.Contains(text, s+" ") })
	}
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

// rulesWereRun leaves out what comes of it that the rules were run by the server alone: the
// rest has to be the same.
func (c *Comparison) rulesWereRun() {
	causes := slices.DeleteFunc(slices.Clone(c.Offline.Causes), func(text string) bool { return strings.Contains(text, notRun) })
	if len(causes) == len(c.Offline.Causes) || slices.ContainsFunc(causes, blocking.MatchString) {
		return
	}
	c.Offline.Causes = causes
	c.Server.Causes = slices.DeleteFunc(slices.Clone(c.Server.Causes), func(text string) bool { return !slices.Contains(causes, text) })
	c.Server.Warnings = slices.DeleteFunc(slices.Clone(c.Server.Warnings), func(text string) bool { return !slices.Contains(c.Offline.Warnings, text) })
	c.Server.Message, c.Offline.Message = "", ""
}
