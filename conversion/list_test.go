package conversion_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
