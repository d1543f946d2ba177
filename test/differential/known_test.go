package differential

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A difference is known only if it is all there is.
func TestExplain_OnlyDifference(t *testing.T) {
	const (
		required   = "metadata.ownerReferences[0].uid: FieldValueRequired: Required value: must not be empty"
		invalid    = "metadata.ownerReferences.uid: FieldValueInvalid: Invalid value: \"\": must not be empty"
		blocked    = "<nil>: FieldValueInvalid: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
		ruled      = "spec: FieldValueInvalid: Invalid value: failed rule: self.a"
		optional   = "spec: FieldValueInvalid: Invalid value: failed rule: oldSelf.value() == self"
		has        = "spec: FieldValueInvalid: Invalid value: failed rule: oldSelf.hasValue()"
		unhashable = "spec: FieldValueInvalid: Invalid value: \"array\": internal error: runtime error: hash of unhashable type map[string]interface {} evaluating rule: self.b == oldSelf.b"
		long       = "spec: FieldValueTooLong: Too long"
	)
	suite := &Suite{CRD: &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"b": {
				XListType: new("set"), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}}, XValidations: apiextensionsv1.ValidationRules{
				{Rule: "oldSelf.value() == self", OptionalOldSelf: new(true)}, {Rule: "oldSelf.hasValue()", OptionalOldSelf: new(true)}, {Rule: "self.a"}, {Rule: "self.b == oldSelf.b"}, {Rule: "self.b + self.b != self.b", Reason: new(apiextensionsv1.FieldValueDuplicate)},
			}},
		}}},
	}}}
	refused := func(causes ...string) Outcome { return Outcome{Code: 422, Causes: causes} }
	accepted := Outcome{Code: 200, Object: map[string]any{"a": "b"}}
	for name, test := range map[string]struct {
		server, offline Outcome
		want            string
	}{
		"owner references":              {refused(invalid), refused(required), "owner references"},
		"and something else":            {refused(invalid, long), refused(required), ""},
		"and the rules":                 {refused(invalid, ruled), refused(blocked, required), "owner references"},
		"and rules that something keep": {refused(invalid, long, ruled), refused(blocked, required, long), ""},
		"an optional":                   {refused(optional), accepted, "the value of an optional oldSelf"},
		"the other way round":           {accepted, refused(optional), "the value of an optional oldSelf"},
		"another rule":                  {refused(ruled), accepted, ""},
		"an optional beside another":    {refused(optional, ruled), refused(ruled), "the value of an optional oldSelf"},
		"a set of maps":                 {refused(unhashable), accepted, "sets in rules"},
		"a set that says no more":       {accepted, refused("spec: FieldValueDuplicate: Duplicate value"), "sets in rules"},
		"a set with a duplicate":        {accepted, refused("spec: FieldValueDuplicate: Duplicate value: 1"), ""},
		"a set of maps, and another":    {refused(unhashable, ruled), accepted, ""},
		"an optional and a set":         {refused(has), refused(unhashable), "the value of an optional oldSelf, sets in rules"},
		"an optional, a set and more":   {refused(has, ruled), refused(unhashable), ""},
		"an optional, and another":      {refused(optional, ruled), accepted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := Comparison{Suite: suite, Minor: 36, Server: test.server, Offline: test.offline}
			if c.diff() == "" {
				t.Fatal("there is no difference")
			}
			if got := strings.Join(explain(c), ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			c.Minor = 37
			if got := explain(c); got != nil {
				t.Errorf("of a server of the release of the libraries, %q", got)
			}
		})
	}
}

func TestExplain_AlmostWhole(t *testing.T) {
	suite := &Suite{CRD: &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Not: &apiextensionsv1.JSONSchemaProps{MultipleOf: new(3.0)}},
		}}},
	}}}
	for body, want := range map[string]bool{
		`{"a":[-5424200048.5]}`: true, `{"a":[{"b":1e9,"c":3000000000.1}]}`: true, `{"a":90000003.3}`: false,
		`{"a":-5424200049}`: false, `{"a":-5424200048}`: true, `{"a":[0.5,1.0,"5424200048.5",null]}`: false, `{"a":54242004.5}`: false, `{`: false,
	} {
		c := Comparison{Suite: suite, Minor: 36, Body: []byte(body), Server: Outcome{Code: 422}, Offline: Outcome{Code: 200}}
		if got := len(explain(c)) > 0; got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
}

// The estimated cost of rules is known of definitions alone.
func TestExplain_EstimatedCost(t *testing.T) {
	const costly, other = "a.rule: FieldValueForbidden: Forbidden: estimated rule cost exceeds budget by factor of 1.006635x", "a.rule: FieldValueInvalid: Invalid value: x"
	accepted := Outcome{Code: 201}
	refused := func(causes ...string) Outcome { return Outcome{Code: 422, Reason: "Invalid", Causes: causes} }
	for name, test := range map[string]struct {
		what            string
		server, offline Outcome
		want            bool
	}{
		"alone":              {"definition", refused(costly), accepted, true},
		"beside another":     {"definition", refused(costly, other), refused(other), true},
		"and another":        {"definition", refused(costly, other), accepted, false},
		"the other way":      {"definition", accepted, refused(costly), false},
		"in another place":   {"create", refused(costly), accepted, false},
		"another altogether": {"definition", refused(other), accepted, false},
	} {
		c := Comparison{What: test.what, Minor: 36, Suite: &Suite{CRD: &apiextensionsv1.CustomResourceDefinition{}}, Server: test.server, Offline: test.offline}
		if got := len(explain(c)) > 0; got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The answers of servers before a difference are known.
func TestExplain_OlderServers(t *testing.T) {
	schema := func(s apiextensionsv1.JSONSchemaProps) *Suite {
		return &Suite{CRD: &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &s}}},
		}}}
	}
	refused := func(causes ...string) Outcome { return Outcome{Code: 422, Reason: "Invalid", Causes: causes} }
	const (
		notRun    = "<nil>: FieldValueInvalid: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
		isRange   = `<nil>: FieldValueInvalid: Invalid value: "": Checked value must be of type integer with format int32 in a.b`
		boundary  = `<nil>: FieldValueInvalid: Invalid value: "": Maximum boundary value must be of type integer (default format) in a.b`
		less      = "a.b: FieldValueInvalid: Invalid value: 3: a.b in body should be less than or equal to 2.5"
		lessOld   = "a.b: FieldValueInvalid: Invalid value: 3: a.b in body should be less than or equal to 2"
		elsewhere = "a.c: FieldValueInvalid: Invalid value: 3: a.c in body should be less than or equal to 2"
		name      = `a: FieldValueTypeInvalid: Invalid value: "_": a in body must be of type k8s-short-name: "_"`
		list      = `a: FieldValueTypeInvalid: Invalid value: "array": a in body must be of type string: "array"`
		ruled     = "a: FieldValueInvalid: Invalid value: failed rule: self.b"
		unknown   = "x.rule: FieldValueInvalid: Invalid value: {}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'distinct' (in container '')"
		misspelt  = "x.rule: FieldValueInvalid: Invalid value: {}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'distant' (in container '')"
		budget    = "y: FieldValueForbidden: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x"
		ofDefault = `x.default: FieldValueInvalid: Invalid value: "": Minimum boundary value must be of type integer (default format) in `
		rule      = `x.default: FieldValueInvalid: Invalid value: failed rule: self > 0`
	)
	plain := schema(apiextensionsv1.JSONSchemaProps{})
	named := schema(apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Format: "k8s-short-name"}}})
	composed := schema(apiextensionsv1.JSONSchemaProps{AnyOf: []apiextensionsv1.JSONSchemaProps{{Format: "k8s-long-name"}}})
	nullable := schema(apiextensionsv1.JSONSchemaProps{
		Properties:   map[string]apiextensionsv1.JSONSchemaProps{"b": {Nullable: true}},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.a + self.a != self.a", MessageExpression: "string(self == self)"}},
	})
	accepted := Outcome{Code: 201}
	for text, test := range map[string]struct {
		since           int // the release without the difference
		what            string
		suite           *Suite
		server, offline Outcome
		want            string // the name of the difference
	}{
		"a range":                          {36, "create", plain, accepted, refused(isRange), "ranges of numbers"},
		"a bound":                          {36, "create", plain, refused(lessOld), refused(boundary, less), "ranges of numbers"},
		"a bound of another":               {36, "create", plain, refused(elsewhere), refused(boundary, less), ""},
		"a range and something else":       {36, "create", plain, refused(elsewhere), refused(isRange), ""},
		"a default out of its range":       {36, "definition", plain, refused(rule), refused(ofDefault), "ranges of numbers"},
		"a rule within a default":          {36, "definition", plain, refused("x.default.a" + rule[9:]), refused(ofDefault), "ranges of numbers"},
		"a default elsewhere":              {36, "definition", plain, refused(rule), refused("y" + ofDefault[1:]), ""},
		"a name":                           {35, "create", plain, accepted, refused(name), "formats of names"},
		"a name that keeps rules from it":  {35, "create", plain, refused(ruled), refused(notRun, name), "formats of names"},
		"a name that keeps rules, refused": {35, "create", plain, refused(elsewhere, ruled), refused(elsewhere, notRun, name), "formats of names"},
		"a name, and something else":       {35, "create", plain, refused(elsewhere), refused(name), ""},
		"a list for a name":                {35, "create", named, refused(list), accepted, "formats of names"},
		"a list that keeps rules from it":  {35, "create", named, refused(notRun, list), refused(ruled), "formats of names"},
		"a list, and something else":       {35, "create", named, refused(list), refused(elsewhere), ""},
		"a list for a text":                {35, "create", plain, refused(list), accepted, ""},
		"a name in a composition":          {35, "create", composed, accepted, refused(elsewhere), "formats of names"},
		"a function":                       {35, "definition", plain, refused(unknown), accepted, "functions of rules"},
		"a function that is costly":        {35, "definition", plain, refused(unknown), refused(budget), "functions of rules"},
		"a message that is costly":         {35, "definition", plain, refused(unknown), refused(strings.Replace(budget, "y", "x.messageExpression", 1)), "functions of rules"},
		"a function that is misspelt":      {35, "definition", plain, refused(misspelt), accepted, ""},
		"a function and something else":    {35, "definition", plain, refused(elsewhere, unknown), accepted, ""},
		"a function in another place":      {35, "create", plain, refused(unknown), accepted, ""},
		"null in a rule":                   {34, "create", nullable, accepted, refused("spec: FieldValueInvalid: Invalid value: true"), "null in rules"},
		"another rule beside null":         {34, "create", nullable, accepted, refused("spec: FieldValueInvalid: Invalid value: truth"), ""},
	} {
		t.Run(text, func(t *testing.T) {
			c := Comparison{What: test.what, Suite: test.suite, Minor: test.since - 1, Server: test.server, Offline: test.offline}
			if got := strings.Join(explain(c), ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			c.Minor = test.since
			if got := explain(c); got != nil {
				t.Errorf("of a server of 1.%d, %q", test.since, got)
			}
		})
	}
}
