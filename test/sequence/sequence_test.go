package sequence

import (
	"fmt"
	"testing"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

func TestRun_Agrees(t *testing.T) {
	cp := controlplane.ForTest(t)
	cp.SkipIfOlder(t, "the kinds of 1.37 are compared")
	out, err := Run(t.Context(), cp, tier.Pick(200, 400), 1)
	expect.NoError(t, err)
	for _, d := range out.Disagreements {
		t.Error(d)
	}
	t.Logf("%d requests", out.Requests)
}

// A difference between the servers is a disagreement, not something that normal takes away.
func TestNormal_KeepsDifferences(t *testing.T) {
	object := func(name string, generation int, uid string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "generation": generation, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": uid[:2]}}
	}
	want := text(newNames().normal(object("a", 1, "00000000-0000-0000-0000-000000000001")))
	for got, same := range map[string]bool{
		text(newNames().normal(object("a", 1, "10000000-0000-0000-0000-000000000002"))): true,
		text(newNames().normal(object("b", 1, "00000000-0000-0000-0000-000000000001"))): false,
		text(newNames().normal(object("a", 2, "00000000-0000-0000-0000-000000000001"))): false,
	} {
		if (got == want) != same {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// A message may quote an object, as that of a JSON patch with an unknown field does, in which the order
// of managedFields depends on times as well.
func TestNormal_QuotedObjects(t *testing.T) {
	message := func(version string, managers ...string) string {
		fields := make([]any, len(managers))
		for i, manager := range managers {
			fields[i] = map[string]any{"manager": manager, "time": fmt.Sprintf("2026-01-01T00:00:%02dZ", i)}
		}
		object := mustJSON(map[string]any{"metadata": map[string]any{"managedFields": fields, "resourceVersion": version}})
		return text(newNames().normal(fmt.Sprintf("patch: Invalid value: %q: strict decoding error", object)))
	}
	want := message("1", "ann", "bob")
	for got, same := range map[string]bool{
		message("2", "bob", "ann"): true,
		message("1", "ann", "cid"): false,
		message("1", "ann"):        false,
	} {
		if (got == want) != same {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// An aggregated API server answers as the custom resources that its definitions describe, except for
// the known differences.
func TestRunAggregated_Agrees(t *testing.T) {
	cp := controlplane.ForTest(t)
	cp.SkipIfOlder(t, "the aggregated API server is made of the libraries of 1.37")
	out, err := RunAggregated(t.Context(), cp, tier.Pick(300, 1500), 2)
	expect.NoError(t, err)
	for _, d := range out.Disagreements {
		t.Error(d)
	}
	t.Logf("%d requests, known differences: %v", out.Requests, out.Known)
}
