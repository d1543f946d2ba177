package conversion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

func question(version, desired string, objects ...string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/` + version +
		`","request":{"uid":"u-1","desiredAPIVersion":"restaurant.programming-kubernetes.info/` + desired +
		`","objects":[` + strings.Join(objects, ",") + `]}}`
}

func post(ctx context.Context, h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// ask returns the answer to a review. The types of v1 and v1beta1 are alike.
func ask(t testing.TB, h http.Handler, body string) *apiextensionsv1.ConversionReview {
	t.Helper()
	w := post(t.Context(), h, body)
	answer := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil || w.Code != http.StatusOK || answer.Response == nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return answer
}

func objects(answer *apiextensionsv1.ConversionReview) []string {
	var texts []string
	for _, o := range answer.Response.ConvertedObjects {
		texts = append(texts, string(o.Raw))
	}
	return texts
}

// A review is answered in order, in the version asked.
func TestHandler_AnswersInOrder(t *testing.T) {
	h := conversion.NewHandler(registry(t, nil, nil))
	for _, version := range []string{"v1", "v1beta1"} {
		answer := ask(t, h, question(version, "v1beta1",
			pizza("v1alpha1", `{"name":"a"}`, `,"spec":{"toppings":["tomato"]}`),
			pizza("v1beta1", `{"name":"b" }`, `,"spec":{ "unknown":1.0}`),
			pizza("v1alpha1", `{"name":"c"}`, ``)))
		if answer.APIVersion != "apiextensions.k8s.io/"+version || answer.Kind != "ConversionReview" || answer.Response.UID != "u-1" || answer.Response.Result.Status != "Success" {
			t.Errorf("the answer is %+v", answer)
		}
		want := []string{
			pizza("v1beta1", `{"name":"a"}`, `,"spec":{"toppings":[{"name":"tomato"}]}`),
			pizza("v1beta1", `{"name":"b" }`, `,"spec":{ "unknown":1.0}`),
			pizza("v1beta1", `{"name":"c"}`, ``),
		}
		if diff := cmp.Diff(want, objects(answer)); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	}
}

// An empty list is converted, and has none of the objects of the review before.
func TestHandler_EmptyList(t *testing.T) {
	h := conversion.NewHandler(registry(t, nil, nil))
	full := question("v1", "v1beta1", pizza("v1beta1", `{"name":"a"}`, ""))
	for _, body := range slices.Repeat([]string{
		question("v1", "v1beta1"),
		strings.Replace(question("v1", "v1beta1"), "[]", "null", 1),
		strings.Replace(question("v1", "v1beta1"), `,"objects":[]`, "", 1),
	}, 10) { // the race detector has a pool forget
		ask(t, h, full)
		if answer := ask(t, h, body); answer.Response.Result.Status != "Success" || len(answer.Response.ConvertedObjects) != 0 || answer.Response.ConvertedObjects == nil {
			t.Errorf("%s is answered with %+v", body, answer.Response)
		}
	}
}

// One failure fails the review and names the object.
func TestHandler_OneFailure(t *testing.T) {
	h := conversion.NewHandler(registry(t, func(ctx context.Context, in *alpha, out *beta) error {
		switch in.Name {
		case "bad":
			return errors.New("out of flour")
		case "worse":
			panic("dough everywhere")
		}
		return copyToHub(ctx, in, out)
	}, nil))
	good := pizza("v1alpha1", `{"name":"good"}`, "")
	for name, c := range map[string]struct{ body, message string }{
		"an error":         {question("v1", "v1beta1", good, pizza("v1alpha1", `{"name":"bad","namespace":"ns"}`, "")), "request.objects[1]: cannot convert Pizza ns/bad from restaurant.programming-kubernetes.info/v1alpha1 to restaurant.programming-kubernetes.info/v1beta1: out of flour"},
		"a panic":          {question("v1", "v1beta1", good, good, pizza("v1alpha1", `{"name":"worse"}`, "")), "request.objects[2]: cannot convert Pizza worse from restaurant.programming-kubernetes.info/v1alpha1 to restaurant.programming-kubernetes.info/v1beta1: panic: dough everywhere"},
		"no object":        {question("v1", "v1beta1", good, `"x"`), "request.objects[1]: expected object, got string"},
		"no list":          {strings.Replace(question("v1", "v1beta1"), "[]", "7", 1), "the body is not of kind ConversionReview: expected array, got number"},
		"unknown target":   {question("v1", "v7", good), "version v7 of kind Pizza.restaurant.programming-kubernetes.info is not registered"},
		"malformed target": {question("v1", "v1/beta1", good), "request.desiredAPIVersion: unexpected GroupVersion string"},
		"no target":        {strings.Replace(question("v1", "v1beta1", good), "desired", "undesired", 1), "request.desiredAPIVersion is required"},
		"truncated":        {question("v1", "v1beta1", good)[:200], "request.objects[0]: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(t, h, c.body)
			got := answer.Response
			if got.UID != "u-1" || answer.APIVersion != "apiextensions.k8s.io/v1" || got.Result.Status != "Failure" || len(got.ConvertedObjects) != 0 {
				t.Errorf("the answer is %+v", got)
			}
			if !strings.Contains(got.Result.Message, c.message) {
				t.Errorf("the message is\n%s, want\n%s", got.Result.Message, c.message)
			}
			if answer := ask(t, h, question("v1", "v1beta1", good)); answer.Response.Result.Status != "Success" {
				t.Errorf("the next request failed: %+v", answer.Response.Result)
			}
		})
	}
}

// explosive is a kind whose own encoder panics.
type explosive struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (*explosive) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*explosive) MarshalJSON() ([]byte, error)   { panic("boom") }

// A panic of an encoder is a failure, wherever it happens.
func TestHandler_EncoderPanic(t *testing.T) {
	s := thingScheme()
	s.AddKnownTypeWithName(thingVersion("v7").WithKind("Thing"), &explosive{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, errors.Join(
		conversion.AddSpoke(reg, note[int8, int16](""), note[int16, int8]("")),
		conversion.AddSpoke(reg, note[int32, int16](""), note[int16, int32]("")),
		conversion.AddSpoke(reg, func(context.Context, *explosive, *V2) error { return nil }, func(context.Context, *V2, *explosive) error { return nil }),
	))
	h := conversion.NewHandler(reg)
	for _, n := range []int{1, 100} {
		things := make([]string, n)
		for i := range things {
			things[i] = fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t%d"}}`, i)
		}
		body := strings.Replace(question("v1", "v7", things...), "restaurant.programming-kubernetes.info/v7", "example.com/v7", 1)
		result := ask(t, h, body).Response.Result
		if result.Status != "Failure" || !strings.Contains(result.Message, "request.objects[0]: cannot convert Thing t0 from example.com/v1 to example.com/v7: panic: boom") {
			t.Errorf("%d things: %+v", n, result)
		}
	}
}

// A function that ends its goroutine, as testing.T.FailNow does, fails the review.
func TestHandler_FunctionEndsGoroutine(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	ended := make(chan struct{})
	var once sync.Once
	h := conversion.NewHandler(registry(t, func(context.Context, *alpha, *beta) error {
		if strings.Contains(string(debug.Stack()), "ServeHTTP") { // not in the goroutine of the request
			<-ended
			return nil
		}
		once.Do(func() { close(ended); goruntime.Goexit() })
		return nil
	}, nil))
	list := slices.Repeat([]string{pizza("v1alpha1", `{"name":"good"}`, "")}, 1000)
	if got := ask(t, h, inParts(question("v1", "v1beta1", list...))).Response.Result.Message; !strings.Contains(got, "a conversion function called runtime.Goexit") {
		t.Errorf("got %q", got)
	}
}

// The first object that fails is named.
func TestHandler_ManyFailures(t *testing.T) {
	h := conversion.NewHandler(registry(t, func(_ context.Context, in *alpha, _ *beta) error {
		if in.Name != "good" {
			return errors.New("out of flour")
		}
		return nil
	}, nil))
	list := make([]string, 1000)
	for i := range list {
		list[i] = pizza("v1alpha1", `{"name":"good"}`, "")
		if i >= 500 {
			list[i] = pizza("v1alpha1", `{"name":"bad"}`, "")
		}
	}
	for range 20 {
		if got := ask(t, h, question("v1", "v1beta1", list...)).Response.Result.Message; !strings.HasPrefix(got, "request.objects[500]: ") {
			t.Fatalf("got %s", got)
		}
	}
}

// Conversion stops when the client does not wait any more.
func TestHandler_CancelledRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	h := conversion.NewHandler(registry(t, func(context.Context, *alpha, *beta) error { calls++; cancel(); return nil }, nil))
	o := pizza("v1alpha1", `{"name":"x"}`, "")
	w := post(ctx, h, question("v1", "v1beta1", o, o, o))
	if calls != 1 || !strings.Contains(w.Body.String(), "stopped at request.objects[1]: context canceled") {
		t.Errorf("after %d calls: %s", calls, w.Body)
	}
}

// Large objects and long lists convert.
func TestHandler_LargeObjectsAndLongLists(t *testing.T) {
	h := conversion.NewHandler(registry(t, nil, nil))
	big := pizza("v1alpha1", `{"name":"big","annotations":{"a":"`+strings.Repeat("x", 3<<20)+`"}}`, "")
	if answer := ask(t, h, question("v1", "v1beta1", big)); len(objects(answer)) != 1 || len(objects(answer)[0]) < 3<<20 {
		t.Errorf("the big object became %d objects: %.200s", len(objects(answer)), answer.Response.Result.Message)
	}
	var reviews sync.WaitGroup
	for n := range 8 { // at once, and one after the other
		reviews.Go(func() {
			for size := 3_000; size <= 10_000; size += 1_000 + 300*n {
				var many []string
				for i := range size {
					many = append(many, pizza("v1alpha1", fmt.Sprintf(`{"name":"n%d-%d"}`, n, i), ""))
				}
				got := objects(ask(t, h, question("v1", "v1beta1", many...)))
				if len(got) != len(many) {
					t.Errorf("%d objects became %d", len(many), len(got))
					return
				}
				for i := range got {
					if want := pizza("v1beta1", fmt.Sprintf(`{"name":"n%d-%d"}`, n, i), ""); got[i] != want {
						t.Errorf("object %d is %s, want %s", i, got[i], want)
						return
					}
				}
			}
		})
	}
	reviews.Wait()
}

// FuzzHandler checks that any body gets an answer that can be read, whatever the handler has answered
// before, and that converted objects have the version that was asked for.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(question("v1", "v1beta1", pizza("v1alpha1", metadata, `,"spec":{"toppings":["tomato"]}`))))
	f.Add([]byte(question("v1beta1", "v1alpha1", pizza("v1beta1", "", `,"spec":{"toppings":[{"name":"a","quantity":2}]}`), "{}")))
	f.Add([]byte(question("v1", "v1beta1", pizza("v1alpha1", `{"labels":{"a":null},"labels":7}`, ""))))
	f.Add([]byte(strings.Replace(question("v1", "v1beta1"), `"objects"`, `"others"`, 1)))
	h := conversion.NewHandler(registry(f, nil, nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(t.Context(), h, string(body))
		answer := &apiextensionsv1.ConversionReview{}
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatalf("%q is answered with %q: %v", body, w.Body, err)
		}
		if fresh := post(t.Context(), conversion.NewHandler(registry(t, nil, nil)), string(body)); fresh.Code != w.Code || fresh.Body.String() != w.Body.String() {
			t.Errorf("%q is answered with %d %s, by a new handler with %d %s", body, w.Code, w.Body, fresh.Code, fresh.Body)
		}
		if w.Code != http.StatusOK || answer.Response.Result.Status != "Success" {
			return
		}
		asked := &apiextensionsv1.ConversionReview{}
		if err := json.Unmarshal(body, asked); err != nil || asked.Request == nil {
			return // encoding/json is stricter about what is inside of the request
		}
		for _, o := range answer.Response.ConvertedObjects {
			var got struct{ APIVersion string }
			if err := json.Unmarshal(o.Raw, &got); err != nil || got.APIVersion != asked.Request.DesiredAPIVersion {
				t.Errorf("%s is not %s: %v", o.Raw, asked.Request.DesiredAPIVersion, err)
			}
		}
	})
}

// The answer is one that the API server can read. encoding/json, and so the API server, reads
// 10,000 levels. A review has three around each object.
func TestHandler_DeepNesting(t *testing.T) {
	h := conversion.NewHandler(registry(t, nil, nil))
	for levels := 9_999; levels <= 10_006; levels++ {
		deep := func(n int) string { return strings.Repeat("[", levels-n) + strings.Repeat("]", levels-n) }
		for where, object := range map[string]string{
			"body":     pizza("v1alpha1", `{"name":"x"}`, `,"unknown":`+deep(4)),
			"metadata": pizza("v1alpha1", `{"name":"x","unknown":`+deep(5)+`}`, ``),
			"as it is": pizza("v1beta1", `{"name":"x"}`, `,"unknown":`+deep(4)),
		} {
			body := question("v1", "v1beta1", object)
			version := `"desiredAPIVersion":"` + v1beta1.GroupVersion.String() + `",`
			versionLast := strings.TrimSuffix(strings.Replace(body, version, "", 1), "}}") + "," + strings.TrimSuffix(version, ",") + "}}"
			for _, body := range []string{body, versionLast} {
				if readable := levels <= 10_000; json.Valid([]byte(body)) != readable {
					t.Fatalf("%s: the request has not %d levels", where, levels)
				} else if answer := ask(t, h, body); (answer.Response.Result.Status == "Success") != readable {
					t.Errorf("%s, %d levels: the answer is %s %.200s", where, levels, answer.Response.Result.Status, answer.Response.Result.Message)
				}
			}
		}
	}
}

// No objects of a failure are counted.
func TestObserve_Failure(t *testing.T) {
	fails := func(_ context.Context, in *v1alpha1.Pizza, _ *v1beta1.Pizza) error {
		if in.Name == "burnt" {
			return errors.New("burnt")
		}
		return nil
	}
	var got []conversion.Observation
	h := conversion.NewHandler(registry(t, fails, nil), conversion.Observe(func(o conversion.Observation) { got = append(got, o) }))
	all := slices.Repeat([]string{pizza("v1alpha1", `{"name":"good"}`, ``)}, 300)
	all[200] = pizza("v1alpha1", `{"name":"burnt"}`, ``)
	ask(t, h, question("v1", "v1beta1", all...))
	ask(t, h, inParts(question("v1", "v1beta1", all...))) // in parallel
	for _, o := range got {
		if len(o.Objects) > 0 || o.Err == nil || o.Failed != v1alpha1.GroupVersion.WithKind("Pizza") {
			t.Errorf("observed: %+v", o)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d observations, want 2", len(got))
	}
}
