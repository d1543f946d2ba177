package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// withProcessors answers a review as on a machine with n processors.
func withProcessors(t *testing.T, n int, h http.Handler, body string) string {
	t.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(n))
	return post(t.Context(), h, body).Body.String()
}

// inParts returns the same review, so large that it is read in parts.
func inParts(body string) string {
	return strings.Replace(body, `"uid":`, `"padding":"`+strings.Repeat("x", 300<<10)+`","uid":`, 1)
}

// The answer on one processor is the same as on four, and that to a large review as to a small one.
func TestHandler_SameAnswerOnAnyProcessors(t *testing.T) {
	h := conversion.NewHandler(registry(t, func(ctx context.Context, in *alpha, out *beta) error {
		if in.Name == "bad" {
			return errors.New("out of flour")
		}
		return copyToHub(ctx, in, out)
	}, nil))
	for _, n := range []int{0, 1, 100, 700} {
		for _, bad := range [][]int{nil, {0}, {n - 1}, {n / 2, n - 1}} {
			var pizzas []string
			for i := range n {
				name := fmt.Sprint("p", i)
				if slices.Contains(bad, i) {
					name = "bad"
				}
				pizzas = append(pizzas, pizza("v1alpha1", `{"name":"`+name+`"}`, `,"spec":{"toppings":["`+strings.Repeat("x", i)+`"]}`))
			}
			body := question("v1", "v1beta1", strings.Join(pizzas, ", "))
			want := post(t.Context(), h, body).Body.String()
			for _, processors := range []int{1, 4} {
				if diff := cmp.Diff(want, withProcessors(t, processors, h, inParts(body))); diff != "" {
					t.Errorf("%d objects, bad %v (-small +large on %d processors):\n%.2000s", n, bad, processors, diff)
				}
			}
		}
	}
}

// A function may keep what it receives, also when the handler answers other requests.
func TestFunction_MayKeepItsObjects(t *testing.T) {
	var mu sync.Mutex
	var kept, copies []runtime.Object
	reg := registry(t, func(ctx context.Context, in *alpha, out *beta) error {
		err := copyToHub(ctx, in, out)
		mu.Lock()
		defer mu.Unlock()
		kept, copies = append(kept, in, out), append(copies, in.DeepCopy(), out.DeepCopy())
		return err
	}, nil)
	h := conversion.NewHandler(reg)
	for round := range 3 {
		var pizzas []string
		for i := range 250 {
			id := fmt.Sprintf("%d-%d", round, i)
			pizzas = append(pizzas, pizza("v1alpha1", `{"name":"`+id+`","labels":{"a":"`+id+`"},"annotations":{"`+id+`":"\n"},"finalizers":["`+id+`"]}`,
				`,"spec":{"toppings":["`+id+`","`+id+`"]},"status":{"cost":`+fmt.Sprint(i)+`}`))
		}
		if got := ask(t, h, inParts(question("v1", "v1beta1", pizzas...))).Response.Result; got.Status != "Success" {
			t.Fatalf("%+v", got)
		}
		convert(t, reg, pizzas[0], v1beta1.GroupVersion)
	}
	if diff := cmp.Diff(copies, kept); diff != "" {
		t.Errorf("(-when it was called +later):\n%.2000s", diff)
	}
}

func TestHandler_ReadsWholeReview(t *testing.T) {
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
		"the list is there twice":  {strings.Replace(body, list, `"objects":[{}],`+list, 1), ""},
		"the version is twice":     {strings.Replace(body, desired, `"desiredAPIVersion":"x",`+desired, 1), ""},
		"another request":          {strings.Replace(body, `"request":`, `"request":{"uid":"u-1","objects":[{}]},"request":`, 1), "the ConversionReview has two requests"},
		"a member that is no JSON": {strings.Replace(body, list, list+`,"junk":{nonsense}`, 1), "unexpected character"},
		"no end":                   {body[:len(body)-1], "unexpected EOF"},
		"no end of the list":       {body[:len(body)-3], "unexpected EOF"},
		"more after the end":       {body + "x", "unexpected data after the value"},
		"a comma too many":         {strings.Replace(body, list, `"objects":[`+o+`,]`, 1), "expected object"},
		"a list of numbers":        {strings.Replace(body, list, `"objects":[1,2]`, 1), "request.objects[0]: expected object, got number"},
		"no comma":                 {strings.Replace(body, list, `"objects":[`+o+o+`]`, 1), "unexpected character"},
		"an object that is broken": {strings.Replace(body, list, `"objects":[{"kind":"Pizza","metadata":{"name":"x",}}]`, 1), "unexpected character"},
	} {
		for _, body := range []string{c.body, inParts(c.body)} {
			answer := ask(t, h, body)
			if c.message == "" {
				if diff := cmp.Diff([]string{want}, objects(answer)); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", name, answer.Response.Result.Message, diff)
				}
			} else if r := answer.Response; r.Result.Status != "Failure" || r.UID != "u-1" || r.Result.Code != 400 || !strings.Contains(r.Result.Message, c.message) {
				t.Errorf("%s: got %+v, want %s", name, r, c.message)
			}
		}
	}
}

// A converter uses its buffers again.
func TestHandler_NothingLeftOfObjectBefore(t *testing.T) {
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
		got := objects(ask(t, conversion.NewHandler(registry(t, nil, nil)), inParts(question("v1", version, things...))))
		for i, thing := range things {
			fresh := conversion.NewHandler(registry(t, nil, nil))
			if diff := cmp.Diff(objects(ask(t, fresh, question("v1", version, thing)))[0], got[i]); diff != "" {
				t.Fatalf("%s (-alone +in a list):\n%s", thing, diff)
			}
		}
	}
}

func TestHandler_ConvertsEachObjectOnce(t *testing.T) {
	var calls atomic.Int64
	h := conversion.NewHandler(registry(t, func(context.Context, *alpha, *beta) error { calls.Add(1); return nil }, nil))
	things := slices.Repeat([]string{pizza("v1alpha1", `{"name":"x"}`, "")}, 2000)
	for _, comma := range []string{",", " , ", "\n,\n"} {
		calls.Store(0)
		if got := objects(ask(t, h, question("v1", "v1beta1", strings.Join(things, comma)))); len(got) != len(things) || calls.Load() != 2000 {
			t.Errorf("%q: %d objects, %d calls", comma, len(got), calls.Load())
		}
	}
}

func TestObserve_NotCalledForUnreadableReview(t *testing.T) {
	h := conversion.NewHandler(registry(t, nil, nil), conversion.Observe(func(o conversion.Observation) { t.Errorf("observed: %+v", o) }))
	ask(t, h, question("v1", "v1beta1", pizza("v1alpha1", `{"name":"x"}`, ""))+"x")
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

func TestConvert_OtherMetadataOfObjectBefore(t *testing.T) {
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
