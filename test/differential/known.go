package differential

import (
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// difference is a known one, and how a comparison does without it.
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

// Same reports whether a text of a server of release 1.minor, such as a message, says the same as
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
		if one := c; k.exclude(&one) && one.diff() == "" {
			return []string{k.name}
		}
	}
	for _, k := range known {
		if k.exclude(&c) {
			names = append(names, k.name)
		}
	}
	if c.diff() != "" {
		return nil
	}
	return names
}

// exclude takes a difference out of a comparison, and reports whether it was there.
func (k difference) exclude(c *Comparison) bool {
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
