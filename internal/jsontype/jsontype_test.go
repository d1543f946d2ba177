package jsontype_test

//lint:file-ignore U1000,SA5008 the types are unusual, and their fields are read by reflection

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/test/expect"
)

type (
	object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              corev1.PodSpec `json:"spec"`
	}
	named struct {
		Untagged string
		Hidden   string `json:"-"`
		Minus    string `json:"-,"`
		Options  string `json:",omitempty"`
		Odd      string `json:"a.b/c é"`
		private  string
	}
	base struct {
		Name  string `json:"name"`
		Size  string `json:"size"`
		Inner string
	}
	other struct {
		Name  string `json:"name"`
		Other string
	}
	text    string
	Text    string
	private struct{ Exported string }
	// hiding has fields that hide others, and fields that hide each other.
	hiding struct {
		Before string `json:"size"`
		base
		*other
		Inner string
	}
	tagged struct {
		base
		Tagged struct{} `json:"Inner"`
	}
	// preferring has a field whose tag decides.
	preferring struct {
		First
		Second
	}
	First  struct{ Same string }
	Second struct {
		Third string `json:"Same"`
	}
	embedder struct {
		text
		Text
		private `json:"private"`
		*recursive
	}
	recursive struct {
		*recursive
		Deep string
	}
)

// FieldsOf returns the members that encoding/json writes, in its order.
func TestFieldsOf_LikeEncodingJSON(t *testing.T) {
	for _, value := range []any{
		object{}, named{}, hiding{other: &other{}}, tagged{}, preferring{}, embedder{recursive: &recursive{}}, corev1.EphemeralContainer{},
	} {
		text, err := json.Marshal(value)
		expect.NoError(t, err)
		var members map[string]json.RawMessage
		expect.NoError(t, json.Unmarshal(text, &members))
		rest := text
		for _, f := range jsontype.FieldsOf(reflect.TypeOf(value)) {
			name, err := json.Marshal(f.JSON)
			expect.NoError(t, err)
			_, after, found := strings.Cut(string(rest), string(name)+":")
			if _, ok := members[f.JSON]; !ok && (f.Has("omitempty") || f.Has("omitzero")) {
				continue
			} else if !found {
				t.Errorf("%T: %s is not here, or not in its place: %s", value, f.JSON, text)
			}
			delete(members, f.JSON)
			rest = []byte(after)
		}
		for name := range members {
			t.Errorf("%T: the field %q is missing", value, name)
		}
	}
	if got := jsontype.FieldsOf(reflect.TypeFor[map[string]int]()); got != nil {
		t.Errorf("a map has the fields %v", got)
	}
}

// The Index and Offset of a field lead to it from the outer struct.
func TestFieldsOf_Place(t *testing.T) {
	value := &hiding{base: base{Name: "x"}, other: &other{Other: "y"}}
	for name, want := range map[string]struct {
		path     string
		indirect bool
	}{
		"size": {".Before", false}, "Inner": {".Inner", false}, "Other": {"other.Other", true},
	} {
		f := jsontype.FieldsOf(reflect.TypeFor[hiding]()).Named(name)
		if f == nil {
			t.Fatalf("%s is missing", name)
		}
		in := ""
		if f.Struct != reflect.TypeFor[hiding]() {
			in = f.Struct.Name()
		}
		if got := in + "." + f.Name; got != want.path || f.Indirect != want.indirect {
			t.Errorf("%s: got %s, %t", name, got, f.Indirect)
		}
		v := reflect.ValueOf(value).Elem()
		if place := v.FieldByIndex(f.Index); !f.Indirect && place.UnsafeAddr() != v.UnsafeAddr()+f.Offset {
			t.Errorf("%s: the offset %d leads elsewhere than the index %v", name, f.Offset, f.Index)
		}
	}
	if f := jsontype.FieldsOf(reflect.TypeFor[hiding]()).Named("name"); f != nil {
		t.Errorf("two fields hide each other, and one of %v remains", f.Struct)
	}
	all := []string{}
	for _, f := range jsontype.AllFields(reflect.TypeFor[hiding]()) {
		all = append(all, f.JSON)
	}
	if diff := cmp.Diff([]string{"size", "name", "size", "Inner", "name", "Other", "Inner"}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type byText struct{ n int }

func (b *byText) UnmarshalText([]byte) error  { return nil }
func (b byText) MarshalText() ([]byte, error) { return nil, nil }

func TestDecodesItself(t *testing.T) {
	for of, want := range map[reflect.Type]bool{
		reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[*metav1.Time](): true, reflect.TypeFor[byText](): true, reflect.TypeFor[base](): false,
	} {
		if decodes, encodes := jsontype.DecodesItself(of), jsontype.EncodesItself(of); decodes != want || encodes != want {
			t.Errorf("%v: got %t and %t", of, decodes, encodes)
		}
	}
}
