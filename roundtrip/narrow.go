package roundtrip

import (
	"math"
	"reflect"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// narrowed returns a schema that allows only what a Go type can decode, as far as that is
// known: controller-gen writes "string" for a duration, and allows quantities whose
// exponents have any number of digits, which take minutes to decode. See [Decoding].
func narrowed(s *structuralschema.Structural, t reflect.Type) *structuralschema.Structural {
	out := s.DeepCopy()
	narrow(out, t)
	return out
}

// texts are what some types are written as in JSON.
var texts = map[reflect.Type]string{
	reflect.TypeFor[metav1.Duration]():   `^([1-9][0-9]{0,2}(ms|s|m|h)|0s)$`,
	reflect.TypeFor[metav1.Time]():       `^20[0-9]{2}-0[1-9]-[0-2][1-8]T[0-1][0-9]:[0-5][0-9]:[0-5][0-9]Z$`,
	reflect.TypeFor[metav1.MicroTime]():  `^20[0-9]{2}-0[1-9]-[0-2][1-8]T[0-1][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z$`,
	reflect.TypeFor[resource.Quantity](): `^-?([0-9]|[1-9][0-9]{1,3})(\.[0-9]{1,2})?(m|k|M|G|Ki|Mi|Gi|e[0-3])?$`,
}

func narrow(s *structuralschema.Structural, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if pattern, ok := texts[t]; ok {
		narrowText(s, pattern, t == reflect.TypeFor[resource.Quantity]())
		return
	}
	if t == reflect.TypeFor[intstr.IntOrString]() {
		narrowNumber(s, math.MinInt32, math.MaxInt32)
		return
	}
	if custom(t) {
		return
	}
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		most := float64(int64(1)<<(t.Bits()-1) - 1)
		narrowNumber(s, -most-1, most)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		narrowNumber(s, 0, float64(int64(1)<<t.Bits()-1))
	case reflect.Uint, reflect.Uint64:
		narrowNumber(s, 0, math.MaxInt32)
	case reflect.Struct:
		for name, field := range fieldsOf(t) {
			if property, ok := s.Properties[name]; ok {
				narrow(&property, field)
				s.Properties[name] = property
			}
		}
	case reflect.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			narrow(s.AdditionalProperties.Structural, t.Elem())
		}
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			narrow(s.Items, t.Elem())
		}
	}
}

// narrowText leaves a pattern or an enum alone that somebody has written, but not the one
// of quantities, which controller-gen has.
func narrowText(s *structuralschema.Structural, pattern string, always bool) {
	v := validation(s)
	if len(v.Enum) == 0 && (v.Pattern == "" || always) {
		v.Pattern = pattern
	}
}

func narrowNumber(s *structuralschema.Structural, least, most float64) {
	v := validation(s)
	if v.Minimum == nil || *v.Minimum < least {
		v.Minimum = &least
	}
	if v.Maximum == nil || *v.Maximum > most {
		v.Maximum = &most
	}
}

func validation(s *structuralschema.Structural) *structuralschema.ValueValidation {
	if s.ValueValidation == nil {
		s.ValueValidation = &structuralschema.ValueValidation{}
	}
	return s.ValueValidation
}
