package replica

import (
	"net/http"
	"slices"
	"testing"

	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook/registration"
)

type text string

func (t text) CABundle() []byte        { return []byte(t) }
func (text) Ready(*http.Request) error { return nil }

// Without the certificates of one source, there are none that could be written. Inject reports a bundle
// that is invalid.
func TestBundles_OneMissing(t *testing.T) {
	first, _, _ := webhooktest.SelfSigned(t, "localhost")
	second, _, _ := webhooktest.SelfSigned(t, "localhost")
	a, b := text(first), text(second)
	for name, c := range map[string]struct {
		all  []registration.Bundle
		want []text // one of them
	}{
		"both":         {bundles{a, b}, []text{a + b, b + a}},
		"one twice":    {bundles{a, a}, []text{a}},
		"nothing yet":  {bundles{a, text("")}, []text{""}},
		"one not PEM":  {bundles{a, text("junk")}, []text{"junk"}},
		"first broken": {bundles{text("junk"), a}, []text{"junk"}},
	} {
		if got := text(bundles(c.all).CABundle()); !slices.Contains(c.want, got) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got, want := (bundles{a, b}).CABundle(), (bundles{b, a}).CABundle(); string(got) != string(want) {
		t.Error("the order of the sources changes the bundle")
	}
}
