package roundtrip

import (
	"math"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// narrowed returns a schema whose parts are narrowed by the parts of a Go type.
func narrowed(s *structuralschema.Structural, t reflect.Type, narrow visitor) *structuralschema.Structural {
	out := s.DeepCopy()
	visit("", t, out, narrow)
	return out
}

// quick narrows a schema to values that a Go type decodes, or refuses, within milliseconds, because
// a Quantity of 1e999999999 takes minutes (math/big makes all of its digits).
func quick(_ string, t reflect.Type, s *structuralschema.Structural) {
	if t == quantityType {
		var short structuralschema.NestedValueValidation
		short.Pattern = `^[^eE]*([eE][-+]?[0-9]{0,3}([^-+0-9].*)?)?$`
		validation(s).AllOf = append(validation(s).AllOf, short)
	}
}

// texts are the forms of some types in JSON that people write, except those that the type writes in
// another way, which an API server may not accept.
var texts = map[reflect.Type]string{
	timeType:                            `^` + day + `T[0-2][0-3]:[0-5][0-9]:[0-5][0-9](\.[0-9]{0,8}[1-9])?` + zone + `$`,
	reflect.TypeFor[metav1.Duration]():  `^(0s|-?[1-9][0-9]{0,2}(\.[0-9]{0,2}[1-9])?(ns|us|ms|s|m|h)|[1-9][0-9]{0,2}h[1-5][0-9]m[1-5][0-9]s)$`,
	reflect.TypeFor[metav1.Time]():      `^` + day + `T[0-2][0-3]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?` + zone + `$`,
	reflect.TypeFor[metav1.MicroTime](): `^` + day + `T[0-2][0-3]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}` + zone + `$`,
	quantityType:                        `^-?([0-9]|[1-9][0-9]{1,3})(\.[0-9]{1,2})?(m|k|M|G|T|Ki|Mi|Gi|Ti|e[0-3])?$`,
}

// percent is a percentage, often one that conversions take for a default.
const percent = `^(0|100|[1-9][0-9]?)%$`

// A day is in this century, or before 1970.
const (
	day  = `(20[0-9]{2}|1[0-8][0-9]{2}|19[0-6][0-9])-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])`
	zone = `(Z|[-+](0[1-9]|1[0-2]):[0-5]0)`
)

// decodable narrows a schema to what a Go type can decode, as far as that is known: controller-gen
// writes "string" for a duration, for example. See [Decoding].
func decodable(_ string, t reflect.Type, s *structuralschema.Structural) {
	if pattern, ok := texts[t]; ok {
		// A pattern or an enum of the author stays, but not the pattern of quantities, which is
		// controller-gen's.
		if v := validation(s); len(v.Enum) == 0 && (v.Pattern == "" || t == quantityType) {
			v.Pattern = pattern
		}
		return
	}
	if t == reflect.TypeFor[intstr.IntOrString]() {
		narrowNumber(s, math.MinInt32, math.MaxInt32)
		var forms structuralschema.NestedValueValidation // so that each is frequent
		for _, form := range [][2]string{{"integer", ""}, {"string", ""}, {"string", percent}} {
			var one structuralschema.NestedValueValidation
			one.ForbiddenGenerics.Type, one.Pattern = form[0], form[1]
			forms.AnyOf = append(forms.AnyOf, one)
		}
		s.ValueValidation.AllOf = append(s.ValueValidation.AllOf, forms)
		return
	}
	if jsontype.DecodesItself(t) {
		return
	}
	if s.Type == "" && s.XPreserveUnknownFields && !s.XIntOrString {
		shape(t, s, 1)
	}
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		most := float64(int64(1)<<(t.Bits()-1) - 1)
		narrowNumber(s, -most-1, most)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		narrowNumber(s, 0, float64(int64(1)<<t.Bits()-1))
	case reflect.Uint, reflect.Uint64:
		narrowNumber(s, 0, math.Inf(1))
	}
}

// shape gives a schema without a type, such as one that contains itself, the form of a Go type,
// down to a depth. It reports whether all values of that form can be decoded.
func shape(t reflect.Type, s *structuralschema.Structural, deep int) bool {
	t = jsontype.Pointed(t)
	i := slices.IndexFunc(jsonTypes, func(name string) bool { return holds(t, name) })
	if i < 0 || jsontype.DecodesItself(t) || deep < 0 && i >= scalars {
		return false
	}
	var part structuralschema.Structural
	switch name := jsonTypes[i]; {
	case name == "array":
		if !shape(t.Elem(), &part, deep-1) {
			return false
		}
		s.Items = &part
	case name == "object" && t.Kind() == reflect.Map:
		if !shape(t.Elem(), &part, deep-1) {
			return false
		}
		s.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: &part}
	case name == "object":
		s.Properties = map[string]structuralschema.Structural{}
		for _, f := range jsontype.FieldsOf(t) {
			if p := (structuralschema.Structural{}); shape(f.Type, &p, deep-1) {
				s.Properties[f.JSON] = p
			}
		}
	}
	s.Type = jsonTypes[i]
	return true
}

var jsonTypes = []string{"boolean", "string", "integer", "number", "array", "object"}

const scalars = 4 // the number of scalar types in jsonTypes

func narrowNumber(s *structuralschema.Structural, least, most float64) {
	v := validation(s)
	if v.Minimum == nil || *v.Minimum < least {
		v.Minimum = &least
	}
	if !math.IsInf(most, 1) && (v.Maximum == nil || *v.Maximum > most) {
		v.Maximum = &most
	}
}

func validation(s *structuralschema.Structural) *structuralschema.ValueValidation {
	if s.ValueValidation == nil {
		s.ValueValidation = &structuralschema.ValueValidation{}
	}
	return s.ValueValidation
}
