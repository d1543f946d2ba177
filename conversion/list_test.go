package conversion_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
)

// randomThing returns an object that may hold others which look just like it, in a
// list and in a string, and that may be long.
func randomThing(r *rand.Rand, depth int) string {
	space := strings.Repeat(" ", r.IntN(5)/4)
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"example.com/v%d","kind":"Thing","metadata":{"name":"t%d"}`, 1+r.IntN(8)/7, r.IntN(1000))
	if r.IntN(3) > 0 {
		fmt.Fprintf(&b, `%s,%s"value":%q`, space, space, strings.Repeat("x,{}[]\"", r.IntN(1<<r.IntN(10))))
	}
	if depth > 0 && r.IntN(3) == 0 {
		b.WriteString(`,"parts":[0`)
		for range r.IntN(8) {
			b.WriteString("," + randomThing(r, depth-1))
		}
		b.WriteString(`]`)
	}
	return b.String() + "}"
}

// TestALongListBecomesTheSameWhoeverConvertsIt checks that it does not matter where
// workers guess that an object begins.
func TestALongListBecomesTheSameWhoeverConvertsIt(t *testing.T) {
	reg := conversion.NewRegistry(runtime.NewScheme())
	if err := conversion.AddFields(reg, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, "v2", conversion.Rename("value", "content")); err != nil {
		t.Fatal(err)
	}
	one := conversion.NewHandler(reg, conversion.Parallelism(1))
	many := conversion.NewHandler(reg, conversion.Parallelism(4))
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		things := make([]string, r.IntN(300))
		for i := range things {
			things[i] = randomThing(r, 2)
		}
		if seed%3 == 0 && len(things) > 0 { // an object that cannot be converted, somewhere
			things[r.IntN(len(things))] = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"bad"},"value":1,"content":2}`
		}
		body := strings.Replace(question("v1", "", strings.Join(things, ", "[:1+r.IntN(2)])), `restaurant.programming-kubernetes.info/`, "example.com/v2", 1)
		if seed%10 == 1 {
			body = body[:len(body)*r.IntN(100)/100] // cut off
		}
		if diff := cmp.Diff(post(t.Context(), one, body).Body.String(), post(t.Context(), many, body).Body.String()); diff != "" {
			t.Fatalf("seed %d (-one worker +four):\n%.2000s", seed, diff)
		}
	}
}

func TestWhatComesAfterTheListIsReadToo(t *testing.T) {
	h := conversion.NewHandler(registry(t, nil, nil))
	o := pizza("v1alpha1", `{"name":"x"}`, "")
	body := question("v1", "v1beta1", o)
	list := `"objects":[` + o + `]`
	uid, desired := `"uid":"u-1",`, `"desiredAPIVersion":"restaurant.programming-kubernetes.info/v1beta1",`
	want := pizza("v1beta1", `{"name":"x"}`, "")
	for name, c := range map[string]struct{ body, message string }{
		"unknown members":          {strings.Replace(body, list, list+`,"more":[{}],"x":null`, 1), ""},
		"the list comes first":     {strings.Replace(strings.Replace(strings.Replace(body, uid, "", 1), desired, "", 1), list, list+","+desired+uid[:len(uid)-1], 1), ""},
		"the kind comes last":      {strings.Replace(body[:len(body)-1], `"kind":"ConversionReview",`, "", 1) + `,"kind":"ConversionReview"}`, ""},
		"the list is there twice":  {strings.Replace(body, list, list+`,"objects":[]`, 1), "objects is there twice"},
		"the version is twice":     {strings.Replace(body, list, list+`,`+desired[:len(desired)-1], 1), "desiredAPIVersion is there twice"},
		"another request":          {body[:len(body)-1] + `,"request":{}}`, "request is there twice"},
		"a member that is no JSON": {strings.Replace(body, list, list+`,"junk":{nonsense}`, 1), "unexpected character"},
		"no end":                   {body[:len(body)-1], "unexpected EOF"},
		"no end of the list":       {body[:len(body)-3], "unexpected EOF"},
		"more after the end":       {body + "x", "there is more after the value"},
		"a comma too many":         {strings.Replace(body, list, `"objects":[`+o+`,]`, 1), "expected object"},
		"no comma":                 {strings.Replace(body, list, `"objects":[`+o+o+`]`, 1), "unexpected character"},
		"an object that is broken": {strings.Replace(body, list, `"objects":[{"kind":"Pizza","metadata":{"name":"x",}}]`, 1), "unexpected character"},
	} {
		answer := ask(t, h, c.body)
		if c.message == "" {
			if diff := cmp.Diff([]string{want}, objects(answer)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, answer.Response.Result.Message, diff)
			}
		} else if r := answer.Response; r.Result.Status != "Failure" || r.UID != "u-1" || r.Result.Code != 400 || !strings.Contains(r.Result.Message, c.message) {
			t.Errorf("%s: got %+v, want %s", name, r, c.message)
		}
	}
}

// TestNothingOfAnObjectIsLeftForTheNext: a worker uses its memory again.
func TestNothingOfAnObjectIsLeftForTheNext(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	var things []string
	for i := range 300 {
		version := pick("v1alpha1", "v1beta1")
		topping := map[string]func() string{
			"v1alpha1": func() string { return pick(`"a"`, `"b"`, `"\u00fc"`) },
			"v1beta1":  func() string { return pick(`{"name":"a"}`, `{"name":"b","quantity":2}`, `{"quantity":1}`, `{}`) },
		}[version]
		toppings := make([]string, r.IntN(7))
		for i := range toppings {
			toppings[i] = topping()
		}
		things = append(things, pizza(version, fmt.Sprintf(`{"name":"p%d"%s%s%s}`, i,
			pick("", `,"labels":{}`, `,"labels":{"a":"b"}`, `,"labels":{"c":"d","e":"f"}`),
			pick("", `,"annotations":{"x":"y\n"}`, `,"annotations":null`),
			pick("", `,"ownerReferences":[{"name":"o"}]`, `,"finalizers":["f"]`, `,"generation":7`)),
			pick("", `,"spec":{}`, `,"spec":{"toppings":[`+strings.Join(toppings, ",")+`]}`)+pick("", `,"status":{"cost":1.5}`)))
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		got := objects(ask(t, conversion.NewHandler(registry(t, nil, nil), conversion.Parallelism(1)), question("v1", version, things...)))
		for i, thing := range things {
			fresh := conversion.NewHandler(registry(t, nil, nil))
			if diff := cmp.Diff(objects(ask(t, fresh, question("v1", version, thing)))[0], got[i]); diff != "" {
				t.Fatalf("%s (-alone +in a list):\n%s", thing, diff)
			}
		}
	}
}

func TestEachObjectIsConvertedOnceHoweverItIsWritten(t *testing.T) {
	var calls atomic.Int64
	h := conversion.NewHandler(registry(t, func(context.Context, *alpha, *beta) error { calls.Add(1); return nil }, nil), conversion.Parallelism(4))
	things := slices.Repeat([]string{pizza("v1alpha1", `{"name":"x"}`, "")}, 2000)
	for _, comma := range []string{",", " , ", "\n,\n"} {
		calls.Store(0)
		if got := objects(ask(t, h, question("v1", "v1beta1", strings.Join(things, comma)))); len(got) != len(things) || calls.Load() != 2000 {
			t.Errorf("%q: %d objects, %d calls", comma, len(got), calls.Load())
		}
	}
}

func TestAReviewThatIsRefusedInTheEndIsObservedAsAFailure(t *testing.T) {
	var seen []conversion.Observation
	h := conversion.NewHandler(registry(t, nil, nil), conversion.Observe(func(o conversion.Observation) { seen = append(seen, o) }))
	ask(t, h, question("v1", "v1beta1", pizza("v1alpha1", `{"name":"x"}`, ""))+"x")
	if len(seen) != 1 || seen[0].Err == nil || len(seen[0].Objects) != 0 {
		t.Errorf("seen: %+v", seen)
	}
}

// Twins have metadata that are not theirs.
type twin1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Template          metav1.ObjectMeta `json:"template,omitzero"`
	Target            metav1.TypeMeta   `json:"target,omitzero"`
}

type twin2 twin1

func (*twin1) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*twin2) DeepCopyObject() runtime.Object { panic("conversion must not copy") }

func TestOtherMetadataAreNotLeftForTheNextObjectEither(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(gv.WithKind("Twin"), &twin1{})
	s.AddKnownTypeWithName(schema.GroupVersion{Group: "example.com", Version: "v2"}.WithKind("Twin"), &twin2{})
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg,
		func(_ context.Context, in *twin2, out *twin1) error { *out = twin1(*in); return nil },
		func(_ context.Context, in *twin1, out *twin2) error {
			out.Template, out.Target = in.Template, in.Target
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	for _, rest := range []string{`,"template":{"name":"secret","labels":{"a":"b"}},"target":{"kind":"Secret"}`, ``} {
		got := convert(t, reg, `{"apiVersion":"example.com/v2","kind":"Twin","metadata":{"name":"x"}`+rest+`}`, gv)
		if want := `{"apiVersion":"example.com/v1","kind":"Twin","metadata":{"name":"x"}` + rest + `}`; cmp.Diff(into[any](t, want), into[any](t, got)) != "" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
