package generate

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

// refused fails unless an object is refused, also once it has been defaulted. It returns the errors.
func (s *server) refused(t *testing.T, object map[string]any) string {
	t.Helper()
	errs := s.validate(object)
	stored := runtime.DeepCopyJSON(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, s.structural)
	defaulting.Default(stored, s.structural)
	if len(errs) == 0 || len(s.validate(stored)) == 0 {
		t.Fatalf("not refused:\n%s", text(object))
	}
	return errs.ToAggregate().Error()
}

// messages are in the errors of what breaks a rule that a schema has.
var messages = map[string]string{
	"type": "must be of type", "required": "Required value", "enum": "Unsupported value",
	"minimum": "should be greater", "maximum": "should be less", "multipleOf": "should be a multiple of",
	"minLength": "should be at least", "maxLength": "Too long", "pattern": "should match",
	"minItems": "should have at least", "maxItems": "Too many", "uniqueItems": "duplicates",
	"x-kubernetes-list-type: (set|map)": "Duplicate value",
	"minProperties":                     "should have at least", "maxProperties": "Too many",
	"anyOf": "must validate at least one", "oneOf": "must validate one and only one", "not": "must not validate",
}

// partial are features of which a rule is about what need not be there, or cannot be broken.
var partial = regexp.MustCompile(`anyOf|oneOf|not: |allOf|metadata|contradiction`)

// Each rule of every feature is broken.
func TestOutside_BreaksEachRule(t *testing.T) {
	for name, schema := range schemas() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemaOf(t, schema)
			g := s.generator(t)
			var all strings.Builder
			for i := range 200 {
				object, err := g.Outside(choices.New(1, t.Name(), i))
				if err != nil && !strings.Contains(schema, "v: {") {
					t.Skip("there is no rule")
				}
				expect.NoError(t, err)
				all.WriteString(s.refused(t, object))
			}
			for rule, message := range messages {
				has := regexp.MustCompile(`(v: {|properties.*)\b` + rule + `: `).MatchString(schema)
				if has && !partial.MatchString(name+schema) && !strings.Contains(all.String(), message) {
					t.Errorf("%s is never broken", rule)
				}
			}
		})
	}
}
