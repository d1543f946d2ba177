package registration

import (
	"context"
	"encoding/pem"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// claimed returns an object with a claim.
func claimed(c claim) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "MutatingWebhookConfiguration"}}
	u.SetAnnotations(map[string]string{DeclaredAnnotation: c.String()})
	return u
}

func TestAReplicaKnowsWhoseDeclarationHolds(t *testing.T) {
	now := time.Now()
	start := now.UnixNano()
	early, late, future := claim{start - 1000, "x"}, claim{start + 1000, "x"}, claim{now.Add(maxAhead).UnixNano(), "x"}
	for name, c := range map[string]struct {
		found         claim
		first, absent bool
		unready       bool
		want          standing
	}{
		"the same declaration":           {claim{start + 1000, "ours"}, false, false, true, ours},
		"an earlier one":                 {early, false, false, false, ours},
		"an earlier one, when not ready": {early, true, false, true, theirs},
		"a later one":                    {late, false, false, false, theirs},
		"one that was there at the start, by another clock":     {late, true, false, false, ours},
		"one at the start whose clock is as far ahead as it is": {future, true, false, false, ours},
		"none":                           {claim{}, true, false, true, ours},
		"none, and no object":            {claim{}, true, true, true, ours},
		"one that orders nothing":        {claim{0, "x"}, false, false, true, ours},
		"one of the same name and times": {claim{start, "z"}, false, false, false, theirs},
	} {
		l := &live{object: &object{digest: "ours"}, claim: claim{start, "ours"}}
		r := &reconciler{webhooks: &Webhooks{}, takeOver: takeOver}
		if c.unready {
			r.ready = func() bool { return false }
		}
		got, with := r.stand(l, c.found, c.first, c.absent, now)
		if got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
		if got == ours && c.found.time != 0 && c.found.digest != "ours" && !with.beats(c.found) {
			t.Errorf("%s: it is replaced by %s, which does not hold against %s", name, with, c.found)
		}
	}
}

func TestRulesOfOthersHoldForFiveMinutes(t *testing.T) {
	now := time.Now()
	l := &live{object: &object{digest: "ours"}, claim: claim{now.UnixNano(), "ours"}}
	r := &reconciler{webhooks: &Webhooks{}, takeOver: takeOver}
	rival := claim{now.UnixNano() + 1000, "x"}
	for _, step := range []struct {
		after time.Duration
		rival claim
		want  standing
	}{
		{0, rival, theirs},
		{5*time.Minute - 1, rival, theirs},
		{5 * time.Minute, claim{rival.time + 1, "y"}, theirs}, // another
		{10*time.Minute - 1, claim{rival.time + 1, "y"}, theirs},
		{10 * time.Minute, claim{rival.time + 1, "y"}, ours},
	} {
		got, with := r.stand(l, step.rival, false, false, now.Add(step.after))
		if got != step.want {
			t.Errorf("after %s: got %d, want %d", step.after, got, step.want)
		}
		if got == ours && !with.beats(step.rival) {
			t.Errorf("after %s: %s does not hold", step.after, with)
		}
	}
}

// TestWhatANewReleaseAddsStays has the clock of a new release's replica go an hour behind that
// of a replica which has nothing of the kind to register.
func TestWhatANewReleaseAddsStays(t *testing.T) {
	w := &Webhooks{}
	now := time.Now()
	l := &live{object: &object{digest: "ours", empty: true}, claim: claim{now.UnixNano(), "ours"}, mu: &w.mu, wake: func() {}, seen: true, watched: true}
	r := &reconciler{webhooks: w, lives: []*live{l}, takeOver: takeOver}
	if err := r.keep(t.Context(), l, nil, nil); err != nil {
		t.Fatal(err)
	}
	l.current = claimed(claim{now.Add(-time.Hour).UnixNano(), "x"})
	if err := r.keep(t.Context(), l, nil, nil); err != nil { // a write would panic for want of a client
		t.Fatal(err)
	}
	if l.takeOverAt.IsZero() {
		t.Error("it is not that of others")
	}
}

// taker takes what is applied, as the only one who has applied anything.
type taker struct {
	dynamic.ResourceInterface
	applied []string
}

func (c *taker) Apply(_ context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions, _ ...string) (*unstructured.Unstructured, error) {
	c.applied = append(c.applied, obj.GetKind())
	obj = obj.DeepCopy()
	obj.SetResourceVersion("12")
	return obj, nil
}

// TestARepairedBundleMakesNobodyTheFirst has an unready replica of a release that adds validating
// webhooks find another CA bundle in the mutating ones of the release before.
func TestARepairedBundleMakesNobodyTheFirst(t *testing.T) {
	w := &Webhooks{}
	now := time.Now()
	client := &taker{}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})
	webhooks := func(name string) []any {
		return []any{map[string]any{"name": name, "clientConfig": map[string]any{"url": "https://127.0.0.1"}}}
	}
	follow := func(kind string, current *unstructured.Unstructured) *live {
		return &live{
			object: &object{kind: kind, name: "p", manager: "p", digest: "ours", declared: map[string]any{"kind": kind, "webhooks": webhooks("new")}},
			claim:  claim{now.UnixNano(), "ours"}, mu: &w.mu, wake: func() {}, client: client,
			current: current, seen: true, watched: true, writes: rate.NewLimiter(1, 5),
		}
	}
	theirs := claimed(claim{now.Add(-time.Hour).UnixNano(), "x"})
	theirs.SetName("p")
	theirs.SetResourceVersion("11")
	theirs.Object["webhooks"] = webhooks("old")
	theirs.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "p", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(
		`{"f:metadata":{"f:annotations":{"f:` + DeclaredAnnotation + `":{}}},"f:webhooks":{"k:{\"name\":\"old\"}":{}}}`)}})
	r := &reconciler{webhooks: w, takeOver: takeOver, ready: func() bool { return false }}
	r.lives = []*live{follow("MutatingWebhookConfiguration", theirs), follow("ValidatingWebhookConfiguration", nil)}
	for range 2 {
		for _, l := range r.lives {
			if err := r.keep(t.Context(), l, bundle, nil); err != nil && err != errWritten {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"MutatingWebhookConfiguration"}, client.applied); diff != "" {
		t.Errorf("what is written (-want +got):\n%s", diff)
	}
}
