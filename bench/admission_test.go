package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/crdkit/crdkit/admission"
)

// These tests show the mistakes that controller-runtime v0.25.2 makes when it compares
// the raw object with the encoding of the Go struct, and that crdkit does not make
// them. If a test fails because of the peer, the peer has fixed its mistake.

// Oven is a kind whose schema has fields that the Go type lacks.
type Oven struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OvenSpec   `json:"spec,omitempty"`
	Status            OvenStatus `json:"status,omitempty"`
}

type OvenSpec struct {
	Serial int64   `json:"serial,omitempty"`
	Racks  []Rack  `json:"racks,omitempty"`
	Lamps  []Lamp  `json:"lamps,omitempty"`
	Doors  []int64 `json:"doors,omitempty"`
}

type (
	Rack struct {
		Name string `json:"name"`
	}
	Lamp struct {
		Watts int `json:"watts"`
	}
	OvenStatus struct {
		Hot bool `json:"hot,omitempty"`
	}
)

func (o *Oven) DeepCopyObject() runtime.Object {
	text, err := json.Marshal(o)
	copied := &Oven{}
	if err == nil {
		err = json.Unmarshal(text, copied)
	}
	if err != nil {
		panic(err)
	}
	return copied
}

var oven = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Oven"}

// ovens returns a webhook of each side that calls a function.
func ovens(t *testing.T, f func(o *Oven)) (ours, theirs http.Handler) {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(oven, &Oven{})
	call := func(_ context.Context, o *Oven) error { f(o); return nil }
	theirs, err := peer.StandaloneWebhook(peer.WithDefaulter(s, defaulter[*Oven](call)), peer.StandaloneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return admission.NewHandler(s, admission.Mutate(call)), theirs
}

// mutated returns the patch of a webhook, and the resulting spec and status.
func mutated(t *testing.T, h http.Handler, rest string) (patch, result string) {
	t.Helper()
	object := `{"apiVersion":"example.com/v1","kind":"Oven","metadata":{"name":"x"}` + rest + `}`
	body := fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","name":"x",`+
		`"kind":{"group":"example.com","version":"v1","kind":"Oven"},"resource":{"group":"example.com","version":"v1","resource":"ovens"},"object":%s}}`, object)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil || !review.Response.Allowed {
		t.Fatalf("%v: %s", err, w.Body)
	}
	text := []byte(object)
	if len(review.Response.Patch) > 0 {
		decoded, err := jsonpatch.DecodePatch(review.Response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = decoded.Apply(text); err != nil {
			t.Fatal(err)
		}
	}
	var members struct{ Spec, Status json.RawMessage }
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	result = string(members.Spec)
	if members.Status != nil {
		result += " status " + string(members.Status)
	}
	return string(review.Response.Patch), result
}

// compareMutations compares the results of both sides for an object.
func compareMutations(t *testing.T, f func(o *Oven), rest, right, peers string) {
	t.Helper()
	ours, theirs := ovens(t, f)
	if _, got := mutated(t, ours, rest); got != right {
		t.Errorf("crdkit makes %s, want %s", got, right)
	}
	if _, got := mutated(t, theirs, rest); got != peers {
		t.Errorf("controller-runtime makes %s, which used to be %s", got, peers)
	}
}

// Controller-runtime gives a newcomer the unknown field of the first element.
func TestControllerRuntime_NewcomerGetsUnknownField(t *testing.T) {
	compareMutations(t, func(o *Oven) { o.Spec.Racks = append([]Rack{{Name: "new"}}, o.Spec.Racks...) },
		`,"spec":{"racks":[{"name":"old","rusty":true}]}`,
		`{"racks":[{"name":"new"},{"name":"old","rusty":true}]}`,
		`{"racks":[{"name":"new","rusty":true},{"name":"old"}]} status {}`)
}

// Controller-runtime misses an edit of an integer beyond 53 bits.
func TestControllerRuntime_MissesEditOfBigInteger(t *testing.T) {
	compareMutations(t, func(o *Oven) { o.Spec.Serial--; o.Spec.Lamps = []Lamp{{Watts: 40}} },
		`,"spec":{"serial":9007199254740993}`,
		`{"lamps":[{"watts":40}],"serial":9007199254740992}`,
		`{"lamps":[{"watts":40}],"serial":9007199254740993} status {}`)
}

// Controller-runtime changes an integer beyond 53 bits.
func TestControllerRuntime_ChangesBigInteger(t *testing.T) {
	compareMutations(t, func(o *Oven) { o.Spec.Doors = append([]int64{1}, o.Spec.Doors...) },
		`,"spec":{"doors":[9007199254740993]}`,
		`{"doors":[1,9007199254740993]}`,
		`{"doors":[1,9007199254740992]} status {}`)
}

func TestControllerRuntime_AddsStatusToEveryPatch(t *testing.T) {
	compareMutations(t, func(o *Oven) { o.Spec.Serial = 1 }, "", `{"serial":1}`, `{"serial":1} status {}`)
}

func TestControllerRuntime_OtherBytesOnEachCall(t *testing.T) {
	ours, theirs := ovens(t, func(o *Oven) {
		o.Spec = OvenSpec{Serial: 1, Racks: []Rack{{Name: "a"}}, Lamps: []Lamp{{Watts: 40}}, Doors: []int64{1}}
	})
	patches := func(h http.Handler) map[string]bool {
		different := map[string]bool{}
		for range 100 {
			patch, _ := mutated(t, h, `,"spec":{"unknown":true}`)
			different[patch] = true
		}
		return different
	}
	if got := patches(ours); len(got) != 1 {
		t.Errorf("crdkit gives %d different patches: %v", len(got), got)
	}
	if got := patches(theirs); len(got) == 1 {
		t.Errorf("controller-runtime gives one patch a hundred times: %v", got)
	}
}

// TestAdmission_Alike checks that both sides return the same result where the peer makes no
// mistake, because a side that omits work is faster.
func TestAdmission_Alike(t *testing.T) {
	ours, theirs := ovens(t, func(o *Oven) { o.Spec.Serial, o.Status.Hot = 7, true })
	_, a := mutated(t, ours, `,"spec":{}`)
	_, b := mutated(t, theirs, `,"spec":{}`)
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("(-controller-runtime +crdkit):\n%s", diff)
	}
}
