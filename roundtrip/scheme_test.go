package roundtrip

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

// Box is a type that is right, with methods for protobuf. Each type below has one method
// that is wrong.
type (
	Box struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              boxSpec `json:"spec"`
	}
	boxSpec struct {
		Note     string            `json:"note,omitempty"`
		Tags     []string          `json:"tags"` // null and [] differ
		Labels   map[string]string `json:"labels,omitempty"`
		Contents *boxSpec          `json:"contents,omitempty"`
		Since    *metav1.MicroTime `json:"since,omitempty"`
		Value    json.RawMessage   `json:"value,omitempty"`
	}
	internalBox Box
	boxList     struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []Box `json:"items"`
	}

	forgetfulBox struct{ Box }
	unstableBox  struct{ Box }
	changedBox   struct{ Box }
	nullBox      struct{ Box }
	wideBox      struct{ Box }
	panickyBox   struct{ Box }
	yamlBox      struct{ Box }
	cborBox      struct{ Box }
	protobufBox  struct{ Box }
	shallowBox   struct{ Box }
	emptyBox     struct{ Box }
)

func (s *boxSpec) copy() *boxSpec {
	if s == nil {
		return nil
	}
	return &boxSpec{s.Note, slices.Clone(s.Tags), maps.Clone(s.Labels), s.Contents.copy(), s.Since.DeepCopy(), slices.Clone(s.Value)}
}

func (b *Box) copy() Box { return Box{b.TypeMeta, *b.ObjectMeta.DeepCopy(), *b.Spec.copy()} }

func (b *Box) DeepCopyObject() runtime.Object { return new(b.copy()) }
func (b *Box) Marshal() ([]byte, error)       { return json.Marshal(b) }
func (b *Box) Unmarshal(data []byte) error    { return json.Unmarshal(data, b) }
func (b *Box) Reset()                         { *b = Box{} }

func (b *internalBox) DeepCopyObject() runtime.Object { return new(internalBox((*Box)(b).copy())) }

func (l *boxList) DeepCopyObject() runtime.Object {
	out := &boxList{l.TypeMeta, *l.ListMeta.DeepCopy(), slices.Clone(l.Items)}
	for i := range out.Items {
		out.Items[i] = l.Items[i].copy()
	}
	return out
}

// plain is a Box without methods.
type plain Box

func (b *forgetfulBox) DeepCopyObject() runtime.Object { return &forgetfulBox{b.copy()} }
func (b *forgetfulBox) MarshalJSON() ([]byte, error) {
	out := b.copy()
	out.Spec.Note = ""
	return json.Marshal((*plain)(&out))
}
func (b *forgetfulBox) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, (*plain)(&b.Box))
}

func (b *unstableBox) DeepCopyObject() runtime.Object { return &unstableBox{b.copy()} }
func (b *unstableBox) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal((*plain)(&b.Box))
	for name := range b.Spec.Labels {
		return append(text[:len(text)-1], fmt.Sprintf(`,"first":%q}`, name)...), err
	}
	return text, err
}
func (b *unstableBox) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*plain)(&b.Box)) }

func (b *changedBox) DeepCopyObject() runtime.Object { return &changedBox{b.copy()} }
func (b *changedBox) MarshalJSON() ([]byte, error) {
	slices.Sort(b.Spec.Tags)
	return json.Marshal((*plain)(&b.Box))
}
func (b *changedBox) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*plain)(&b.Box)) }

func (b *nullBox) DeepCopyObject() runtime.Object { return &nullBox{b.copy()} }
func (b *nullBox) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, (*plain)(&b.Box))
	if b.Spec.Tags == nil {
		b.Spec.Tags = []string{}
	}
	return err
}

func (b *wideBox) DeepCopyObject() runtime.Object { return &wideBox{b.copy()} }
func (b *wideBox) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal((*plain)(&b.Box))
	return append(text[:len(text)-1], `,"extra":true}`...), err
}

func (b *panickyBox) DeepCopyObject() runtime.Object { return &panickyBox{b.copy()} }
func (b *panickyBox) MarshalJSON() ([]byte, error) {
	if b.Spec.Contents != nil {
		_ = b.Spec.Contents.Contents.Note
	}
	return json.Marshal((*plain)(&b.Box))
}
func (b *panickyBox) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*plain)(&b.Box)) }

// A yamlBox holds a number, whose text YAML does not keep.
func (b *yamlBox) DeepCopyObject() runtime.Object { return &yamlBox{b.copy()} }

func (b *cborBox) DeepCopyObject() runtime.Object  { return &cborBox{b.copy()} }
func (b *cborBox) UnmarshalCBOR(data []byte) error { return errors.New("not in CBOR") }
func (b *cborBox) MarshalCBOR() ([]byte, error)    { return []byte{0xa0}, nil } // {}

func (b *protobufBox) DeepCopyObject() runtime.Object { return &protobufBox{b.copy()} }
func (b *protobufBox) Marshal() ([]byte, error) {
	out := b.copy()
	out.Spec.Note = ""
	return json.Marshal(&out)
}

func (b *shallowBox) DeepCopyObject() runtime.Object {
	out := b.copy()
	if out.Spec.Contents != nil {
		out.Spec.Contents.Labels = b.Spec.Contents.Labels
	}
	return &shallowBox{out}
}

func (b *emptyBox) DeepCopyObject() runtime.Object {
	out := b.copy()
	out.Spec.Tags = append([]string{}, b.Spec.Tags...)
	return &emptyBox{out}
}

var boxVersion = schema.GroupVersion{Group: "store.example.com", Version: "v1"}

// boxes is a scheme in which the kind Box has a type.
func boxes(obj runtime.Object) *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(boxVersion.WithKind("Box"), obj)
	metav1.AddToGroupVersion(s, boxVersion)
	return s
}

// internalBoxes is a scheme with an internal version and a list, in which convert may
// change what a conversion from the internal version has made.
func internalBoxes(t *testing.T, convert func(out *Box)) *runtime.Scheme {
	t.Helper()
	s := boxes(&Box{})
	s.AddKnownTypeWithName(boxVersion.WithKind("BoxList"), &boxList{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: boxVersion.Group, Version: runtime.APIVersionInternal, Kind: "Box"}, &internalBox{})
	err := s.AddConversionFunc((*Box)(nil), (*internalBox)(nil), func(in, out any, _ apiconversion.Scope) error {
		*out.(*internalBox) = internalBox(in.(*Box).copy())
		return nil
	})
	if err == nil {
		err = s.AddConversionFunc((*internalBox)(nil), (*Box)(nil), func(in, out any, _ apiconversion.Scope) error {
			*out.(*Box) = (*Box)(in.(*internalBox)).copy()
			convert(out.(*Box))
			return nil
		})
	}
	expect.NoError(t, err)
	return s
}

func defaultedBoxes(set func(b *Box)) *runtime.Scheme {
	s := boxes(&Box{})
	s.AddTypeDefaultingFunc(&Box{}, func(obj any) { set(obj.(*Box)) })
	return s
}

// boxFuncs make numbers that are written as JSON writes them, and few boxes within boxes.
var boxFuncs = []any{
	func(v *json.RawMessage, c randfill.Continue) { *v = fmt.Append(nil, c.Intn(3)) },
	func(s **boxSpec, c randfill.Continue) {
		if c.Intn(3) == 1 {
			*s = &boxSpec{}
			c.Fill(*s)
		}
	},
}

// findInScheme returns a counterexample to each law, or to one, as TestScheme would find it.
func findInScheme(t *testing.T, s *runtime.Scheme, seed uint64, only Law, funcs ...any) map[Law]*counterexample {
	t.Helper()
	cfg, err := newConfigForScheme(s, []Option{Funcs(boxFuncs...), Funcs(funcs...), Seed(seed), Iterations(200)})
	expect.NoError(t, err)
	found := map[Law]*counterexample{}
	for _, kind := range kindsOf(s) {
		all := schemeSubjects(conversion.NewRegistry(s), cfg, kind)
		for _, sub := range all {
			if only != "" && sub.law != only {
				continue
			}
			c, err := sub.search(t.Context(), cfg.budget(len(all)))
			expect.NoError(t, err)
			if c != nil {
				found[sub.law] = c
			}
		}
	}
	return found
}

// Each bug of a type is found and shrinks.
func TestTestScheme_EachBugIsFound(t *testing.T) {
	number := func(v *json.RawMessage, c randfill.Continue) { *v = []byte("1.50") }
	for _, c := range []struct {
		name   string
		scheme *runtime.Scheme
		funcs  []any
		law    Law
		report string // has this
	}{
		{"a field is not written", boxes(&forgetfulBox{}), nil, JSON, "Note:(string)"},
		{"the order of a map is written", boxes(&unstableBox{}), nil, JSON, "an object has two encodings"},
		{"to write changes the object", boxes(&changedBox{}), nil, JSON, "to encode an object changes it"},
		{"null is read as an empty list", boxes(&nullBox{}), nil, JSON, "- spec.tags: null"},
		{"a field is written that nobody knows", boxes(&wideBox{}), nil, JSON, `unknown field "extra"`},
		{"a panic", boxes(&panickyBox{}), nil, JSON, "panickyBox).MarshalJSON"},
		{"YAML changes the text of a number", boxes(&yamlBox{}), []any{number}, YAML, "1.50"},
		{"CBOR has methods of its own", boxes(&cborBox{}), nil, CBOR, "kind"},
		{"protobuf lacks a field", boxes(&protobufBox{}), nil, Protobuf, "note"},
		{"a copy shares a map", boxes(&shallowBox{}), nil, DeepCopy, "the copy shares the memory of spec.contents.labels"},
		{"nil becomes empty in a copy", boxes(&emptyBox{}), nil, DeepCopy, "+ spec.tags: []"},
		{"the internal version loses a field", internalBoxes(t, func(out *Box) { out.Spec.Note = "" }), nil, RoundTrip, "note"},
		{"a default grows", defaultedBoxes(func(b *Box) { b.Spec.Tags = append(b.Spec.Tags, "new") }), nil, Idempotence, `"new"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				found := findInScheme(t, c.scheme, seed, c.law, c.funcs...)[c.law]
				if found == nil {
					t.Errorf("seed %d: %s does not find it", seed, c.law)
					continue
				}
				if !strings.Contains(found.report(), c.report) {
					t.Errorf("seed %d: no %q in:\n%s", seed, c.report, found.report())
				}
				if n := strings.Count(found.yaml(), "\n"); n > 16 {
					t.Errorf("seed %d: more than 16 lines:\n%s", seed, found.yaml())
				}
			}
		})
	}
}

// A bug breaks one law, and no other law reports it.
func TestTestScheme_NoOtherLawsFault(t *testing.T) {
	for _, c := range []struct {
		scheme *runtime.Scheme
		want   Law
	}{
		{boxes(&shallowBox{}), DeepCopy},
		{boxes(&emptyBox{}), DeepCopy},
		{boxes(&protobufBox{}), Protobuf},
		{boxes(&cborBox{}), CBOR},
		{defaultedBoxes(func(b *Box) { b.Spec.Tags = append(b.Spec.Tags, "new") }), Idempotence},
		{internalBoxes(t, func(out *Box) { out.Spec.Note = "" }), RoundTrip},
	} {
		if diff := cmp.Diff([]Law{c.want}, slices.Collect(maps.Keys(findInScheme(t, c.scheme, 1, "")))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.want, diff)
		}
	}
}

// A correct type violates no law.
func TestTestScheme_NoBug(t *testing.T) {
	right := func(*Box) {}
	set := func(b *Box) {
		if len(b.Spec.Tags) == 0 {
			b.Spec.Tags = []string{"new"}
		}
	}
	for _, s := range []*runtime.Scheme{internalBoxes(t, right), defaultedBoxes(set)} {
		TestScheme(t, s, Funcs(boxFuncs...), Iterations(200))
	}
}

// Types of Kubernetes keep the laws.
func TestTestScheme_TypesOfKubernetes(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.Deployment{}, &appsv1.DeploymentList{})
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.Node{}, &corev1.Event{}, &corev1.List{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	TestScheme(t, s, Iterations(10))
}

// Kinds of a scheme are those that not each scheme has.
func TestTestScheme_Kinds(t *testing.T) {
	s := internalBoxes(t, func(*Box) {})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: boxVersion.Group, Version: "v1beta1", Kind: "Box"}, &forgetfulBox{})
	want := []conversion.Kind{
		{GroupKind: schema.GroupKind{Group: boxVersion.Group, Kind: "Box"}, Hub: runtime.APIVersionInternal, Versions: []string{"v1beta1", "v1"}},
		{GroupKind: schema.GroupKind{Group: boxVersion.Group, Kind: "BoxList"}, Versions: []string{"v1"}},
	}
	if diff := cmp.Diff(want, kindsOf(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUser_Scheme is what [runTestOfAUser] runs, in a process of its own.
func TestUser_Scheme(t *testing.T) {
	funcs := Funcs(boxFuncs...)
	switch os.Getenv("TEST_OF_A_USER") {
	case "lossy":
		TestScheme(t, internalBoxes(t, func(out *Box) { out.Spec.Note = "" }), funcs)
	case "lossy, declared":
		TestScheme(t, internalBoxes(t, func(out *Box) { out.Spec.Note = "" }), funcs, Iterations(50),
			Normalize("nobody reads notes", func(b *Box) { b.Spec.Note, b.Spec.Contents = "", nil }),
			Normalize("nobody reads them there", func(b *internalBox) { b.Spec.Note, b.Spec.Contents = "", nil }))
	case "without":
		TestScheme(t, boxes(&shallowBox{}), funcs, Iterations(50), SkipLaw(DeepCopy, "nobody copies boxes"), SkipLaw(CBOR, "nobody reads it"))
	case "empty":
		TestScheme(t, runtime.NewScheme())
	case "unknown":
		TestScheme(t, boxes(&Box{}), Normalize("why", func(*shallowBox) {}))
	case "not a function":
		TestScheme(t, boxes(&Box{}), Funcs("not a function"))
	default:
		t.Skip("other tests run it")
	}
}

// The subtests of a scheme are named by kind, version and law.
func TestTestScheme_Subtests(t *testing.T) {
	output, failed := runTestOfAUser(t, "lossy", "^TestUser_Scheme$", "CRDKIT_ROUNDTRIP_ITERATIONS=50")
	if !failed {
		t.Fatalf("it passes:\n%s", output)
	}
	var got []string
	for _, line := range regexp.MustCompile(`(?m)^\s*--- (\w+): TestUser_Scheme/(\S+/\S+/\S+)`).FindAllStringSubmatch(output, -1) {
		got = append(got, line[1]+" "+line[2])
	}
	want := []string{
		"PASS Box/v1/json", "PASS Box/v1/yaml", "PASS Box/v1/cbor", "PASS Box/v1/protobuf", "PASS Box/v1/deep-copy", "PASS Box/v1/idempotence",
		"PASS Box/__internal/deep-copy", "FAIL Box/v1→__internal→v1/round-trip", "FAIL Box/__internal→v1→__internal/round-trip",
		"PASS BoxList/v1/json", "PASS BoxList/v1/yaml", "PASS BoxList/v1/cbor", "PASS BoxList/v1/deep-copy", "PASS BoxList/v1/idempotence",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := regexp.MustCompile(`(CRDKIT_ROUNDTRIP_SEED=\d+) (CRDKIT_ROUNDTRIP_ITERATIONS=\d+) go test -run '(.*)' \.`).FindStringSubmatch(output)
	if again == nil {
		t.Fatalf("no command in:\n%s", output)
	}
	if output, failed := runTestOfAUser(t, "lossy", again[3], again[1], again[2]); !failed || strings.Count(output, " law does not hold") != 1 {
		t.Errorf("%s does not fail:\n%s", again[0], output)
	}
}

// Options count for a scheme too.
func TestTestScheme_Options(t *testing.T) {
	for _, c := range []struct {
		which  string
		failed bool
		want   []string
	}{
		{"lossy, declared", false, []string{"v1 is compared after roundtrip.Normalize: nobody reads notes"}},
		{"without", false, []string{"nobody copies boxes", "nobody reads it"}},
		{"empty", true, []string{"the scheme has no kinds"}},
		{"unknown", true, []string{"roundtrip.Normalize: no kind is registered"}},
		{"not a function", true, []string{"roundtrip.Funcs: Filler.Funcs: all arguments must be functions"}},
	} {
		output, failed := runTestOfAUser(t, c.which, "^TestUser_Scheme$")
		if failed != c.failed {
			t.Errorf("%s: failed is %v:\n%s", c.which, failed, output)
		}
		for _, want := range c.want {
			if strings.Count(output, want) != 1 && !c.failed || !strings.Contains(output, want) {
				t.Errorf("%s: not once %q in:\n%s", c.which, want, output)
			}
		}
	}
	if _, err := newConfigForScheme(boxes(&Box{}), []Option{CRD([]byte("kind: none"))}); err == nil {
		t.Error("a definition is accepted")
	}
	if _, err := newConfigForScheme(boxes(&Box{}), []Option{Refuse("never", func(error) bool { return true })}); err == nil {
		t.Error("a refusal is accepted")
	}
}

// Values are equal if Kubernetes says so.
func TestTestScheme_EqualValues(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{})
	cfg, err := newConfigForScheme(s, nil)
	expect.NoError(t, err)
	g, err := newTypeGenerator(conversion.NewRegistry(s), cfg, kindsOf(s)[0], "v1")
	expect.NoError(t, err)
	equal := map[bool]int{}
	for i := range 100 {
		src := choices.New(1, "name", i)
		a, err := g.value(src)
		expect.NoError(t, err)
		stream := src.Stream()
		if k := slices.IndexFunc(stream[len(stream)/2:], func(v uint64) bool { return v > 0 }); k >= 0 {
			stream[len(stream)/2+k] /= 2
		}
		nearly, err := g.value(choices.Of(stream))
		expect.NoError(t, err)
		text, err := json.Marshal(a)
		expect.NoError(t, err)
		read := &corev1.Pod{}
		expect.NoError(t, json.Unmarshal(text, read))
		for _, b := range []runtime.Object{a.DeepCopyObject(), nearly, read} {
			want := equality.Semantic.DeepEqual(a, b)
			equal[want]++
			if got := sameValue(a, b, false); got != want {
				t.Errorf("object %d: equal is %v: %s", i, got, differ(a, b).diff())
			}
			if got, want := sameValue(a, b, true), equality.Semantic.DeepEqualWithNilDifferentFromEmpty(a, b); got != want {
				t.Errorf("object %d: strictly equal is %v: %s", i, got, differ(a, b).diff())
			}
		}
	}
	if equal[true] < 100 || equal[false] < 50 {
		t.Errorf("%v", equal)
	}
}
