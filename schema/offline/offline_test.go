package offline_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/differential"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
)

var update = flag.Bool("update", false, "write testdata from what the real API server does")

// Files written by: go test ./schema/offline -run TestTheAPIServerDoesTheSame -update
const (
	gadgetsGolden     = "testdata/gadgets.json"
	undecodableGolden = "testdata/undecodable.json"
)

// namespaces are the labels of the namespaces.
var namespaces = map[string]map[string]string{"default": {"team": "gears"}}

func gadgets(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, mutating []admissionregistrationv1.MutatingWebhook, validating []admissionregistrationv1.ValidatingWebhook, more ...offline.Option) (*offline.Resource, *reviews) {
	t.Helper()
	definition, err := schema.New(crd)
	if err != nil {
		t.Fatal(err)
	}
	seen := &reviews{Handler: gadgetHandler()}
	opts := append(more, offline.Mutate(seen, mutating...), offline.Validate(seen, validating...), offline.Namespaces(namespaces))
	if crd.Spec.Conversion != nil {
		opts = append(opts, offline.Convert(seen))
	}
	r, err := offline.New(definition, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r, seen
}

// TestItDoesWhatAServerDid compares with what a real API server has answered to the same
// requests, and with what it has asked the webhooks: see TestTheAPIServerDoesTheSame.
func TestItDoesWhatAServerDid(t *testing.T) {
	for file, steps := range map[string][]step{gadgetsGolden: gadgetSteps(), undecodableGolden: undecodableSteps()} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []outcome
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			const url = "https://127.0.0.1:1"
			mutating, validating := gadgetHooks(url, nil)
			r, seen := gadgets(t, gadgetCRD(url, nil), mutating, validating)
			compare(t, controlplane.Release, want, play(t, offlineServer{r, "default"}, seen, steps))
		})
	}
}

// define returns the definition of gadgets, without a word on conversion.
func define(t testing.TB, change ...func(*apiextensionsv1.CustomResourceDefinition)) *schema.Definition {
	t.Helper()
	crd := unconverted("", nil)
	for _, f := range change {
		f(crd)
	}
	definition, err := schema.New(crd)
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

func newGadgets(t testing.TB, opts ...offline.Option) *offline.Resource {
	t.Helper()
	r, err := offline.New(define(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAllMistakesAreFoundWhenItIsMade(t *testing.T) {
	converted := define(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = gadgetCRD("https://x", nil).Spec.Conversion
	})
	_, err := offline.New(converted,
		offline.Mutate(nil),
		offline.Validate(gadgetHandler(),
			admissionregistrationv1.ValidatingWebhook{Name: "new.example.com", AdmissionReviewVersions: []string{"v3"}},
			admissionregistrationv1.ValidatingWebhook{Name: "bad.example.com", ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}))
	want := `offline: gadgets.example.com: mutating webhook "mutate.gadgets.example.com": the handler is nil
validating webhook "new.example.com": webhooks[0].admissionReviewVersions: Invalid value: ["v3"]: must include at least one of v1, v1beta1
validating webhook "bad.example.com": webhooks[1].objectSelector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator
a webhook converts the objects: it is missing, see offline.Convert`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := offline.New(nil); err == nil {
		t.Error("a definition that is nil is no error")
	}
}

func TestAVersionThatIsNotThereIsAnErrorOfTheCaller(t *testing.T) {
	r, err := offline.New(define(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[2].Served = false }))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, version := range []string{"v3", "v1alpha1"} {
		object := []byte(gadget(version, "a", "", ""))
		for verb, f := range map[string]func() (*schema.Result, error){
			"create":       func() (*schema.Result, error) { return r.Create(ctx, version, object) },
			"update":       func() (*schema.Result, error) { return r.Update(ctx, version, object) },
			"updateStatus": func() (*schema.Result, error) { return r.UpdateStatus(ctx, version, object) },
			"patch": func() (*schema.Result, error) {
				return r.Patch(ctx, version, "", "a", types.MergePatchType, []byte("{}"))
			},
			"get":    func() (*schema.Result, error) { return r.Get(ctx, version, "", "a") },
			"list":   func() (*schema.Result, error) { return r.List(ctx, version, "") },
			"delete": func() (*schema.Result, error) { return r.Delete(ctx, version, "", "a") },
		} {
			out, err := f()
			if out == nil || err == nil || apierrors.IsNotFound(err) != (version == "v1alpha1") || apierrors.IsInternalError(err) {
				t.Errorf("%s in %s: %v, %v", verb, version, out, err)
			}
		}
	}
}

func TestAPatchOfAnotherTypeIsAnErrorOfTheCaller(t *testing.T) {
	r := newGadgets(t)
	if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", ""))); err != nil {
		t.Fatal(err)
	}
	_, err := r.Patch(t.Context(), "v1", "", "a", types.ApplyYAMLPatchType, []byte("{}"))
	if want := "offline: a patch of type application/apply-patch+yaml is not supported: there are application/merge-patch+json and application/json-patch+json"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnUpdateNeedsAName(t *testing.T) {
	r := newGadgets(t)
	if _, err := r.Update(t.Context(), "v1", []byte("{")); !apierrors.IsBadRequest(err) {
		t.Errorf("of no JSON: %v", err)
	}
	_, err := r.Update(t.Context(), "v1", []byte(gadget("v1", "generated-", "", "")))
	if want := "offline: the object to update has no name"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWhatDiffersEachTimeCanBeFixed(t *testing.T) {
	var user authenticationv1.UserInfo
	r := newGadgets(t,
		offline.Clock(func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)) }),
		offline.UIDs(func() types.UID { return "u" }),
		offline.User(authenticationv1.UserInfo{Username: "ada", UID: "1", Groups: []string{"chefs"}, Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}}}),
		offline.Validate(answer(func(request map[string]any) map[string]any {
			text, err := json.Marshal(request["userInfo"])
			must(err)
			must(json.Unmarshal(text, &user))
			return map[string]any{"allowed": true}
		})))
	out, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", "")))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"creationTimestamp":"2026-01-02T02:04:05Z","generation":1,"name":"a","namespace":"default","resourceVersion":"1","uid":"u"}}`
	if diff := cmp.Diff(want, string(out.Object)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(strings.Replace(want, `"resourceVersion":"1",`, "", 1), string(out.Stored)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(authenticationv1.UserInfo{Username: "ada", UID: "1", Groups: []string{"chefs"}, Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}}}, user); diff != "" {
		t.Errorf("the user (-want +got):\n%s", diff)
	}
}

func TestAHandlerThatPanicsOrSleepsHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"panic": {func(http.ResponseWriter, *http.Request) { panic("gears") }, "the handler panicked: gears"},
		"sleep": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "context deadline exceeded"},
	} {
		r := newGadgets(t, offline.Mutate(c.h, admissionregistrationv1.MutatingWebhook{Name: "m.example.com", TimeoutSeconds: new(int32(1))}))
		_, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", "")))
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "m.example.com": failed to call webhook: Post "https://m.example.com/?timeout=1s": `+c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A webhook may look for other objects, and an update starts again if the webhook, or
// somebody else, changes the object meanwhile.
func TestWebhooksMayUseTheResource(t *testing.T) {
	var r *offline.Resource
	var calls atomic.Int32
	r = newGadgets(t, offline.Validate(answer(func(request map[string]any) map[string]any {
		if request["operation"] == "UPDATE" && calls.Add(1) == 1 {
			if _, err := r.Patch(t.Context(), "v1", "", "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`)); err != nil {
				t.Error(err)
			}
		}
		return map[string]any{"allowed": true}
	})))
	if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", `{"size":1}`))); err != nil {
		t.Fatal(err)
	}
	out, err := r.Patch(t.Context(), "v1", "", "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`))
	if err != nil || !strings.Contains(string(out.Object), `"resourceVersion":"2"`) || calls.Load() != 3 {
		t.Errorf("got %s, %v after %d calls", out.Object, err, calls.Load())
	}
}

func TestRequestsMayComeAtTheSameTime(t *testing.T) {
	h := gadgetHandler()
	mutating, validating := gadgetHooks("https://x", nil)
	r := newGadgets(t, offline.Convert(handlerAt(h, "/convert")), offline.Mutate(h, mutating...), offline.Validate(h, validating...))
	if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "shared", "", `{"size":1}`))); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for _, f := range []func() (*schema.Result, error){
				func() (*schema.Result, error) {
					return r.Create(t.Context(), "v2", []byte(gadget("v2", fmt.Sprintf("g%d", i), "count=me", `{"length":1}`)))
				},
				func() (*schema.Result, error) {
					return r.Patch(t.Context(), "v2", "", "shared", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l%d":"x"}}}`, i))
				},
				func() (*schema.Result, error) { return r.List(t.Context(), "v2", "") },
			} {
				if _, err := f(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	out, err := r.Get(t.Context(), "v1", "", "shared")
	if err != nil {
		t.Fatal(err)
	}
	labels := decode(t, out.Object)["metadata"].(map[string]any)["labels"].(map[string]any)
	if len(labels) != 8 || !strings.Contains(string(out.Object), `"resourceVersion":`) {
		t.Errorf("got %s", out.Object)
	}
}

// handlerAt serves all requests at one path.
func handlerAt(h http.Handler, path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = path
		h.ServeHTTP(w, r)
	}
}

func TestNoMemoryIsSharedWithTheCaller(t *testing.T) {
	r := newGadgets(t)
	object := []byte(gadget("v1", "a", "", `{"size":1}`))
	out, err := r.Create(t.Context(), "v1", object)
	if err != nil {
		t.Fatal(err)
	}
	want := string(out.Object)
	for _, text := range [][]byte{object, out.Object, out.Stored} {
		clear(text)
	}
	got, err := r.Get(t.Context(), "v1", "default", "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got.Object)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// sameTexts compares texts with those of a server of release 1.minor.
func sameTexts(minor int) cmp.Option {
	return cmp.Comparer(func(a, b string) bool { return differential.Same(minor, a, b) || differential.Same(minor, b, a) })
}

// compare compares what a server of release 1.minor says with what is said offline.
func compare(t *testing.T, minor int, want, got []outcome) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("there are %d steps, want %d", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		t.Run(got[i].Step, func(t *testing.T) {
			if diff := cmp.Diff(want[i], got[i], sameTexts(minor)); diff != "" {
				t.Errorf("(-server +offline):\n%s", diff)
			}
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	h := gadgetHandler()
	mutating, validating := gadgetHooks("https://x", nil)
	r := newGadgets(b, offline.Convert(handlerAt(h, "/convert")), offline.Mutate(h, mutating...), offline.Validate(h, validating...))
	for i := 0; b.Loop(); i++ {
		if _, err := r.Create(b.Context(), "v2", []byte(gadget("v2", fmt.Sprint("g", i), "count=me", `{"length":1}`))); err != nil {
			b.Fatal(err)
		}
	}
}
