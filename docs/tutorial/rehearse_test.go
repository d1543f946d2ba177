package tutorial_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	step2 "github.com/crdkit/crdkit/docs/tutorial/step2"
	step3 "github.com/crdkit/crdkit/docs/tutorial/step3"
	step4 "github.com/crdkit/crdkit/docs/tutorial/step4"
	step5 "github.com/crdkit/crdkit/docs/tutorial/step5"
	step6 "github.com/crdkit/crdkit/docs/tutorial/step6"
	step7 "github.com/crdkit/crdkit/docs/tutorial/step7"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
	"github.com/crdkit/crdkit/webhook/registration"
)

// TestEachStep_KeepsStoredBooks rehearses each step with books that the one before has stored, by
// its definition and its webhook.
func TestEachStep_KeepsStoredBooks(t *testing.T) {
	const v1alpha1 = `{apiVersion: library.example.com/v1alpha1, kind: Book, metadata: {name: dune}, spec: {title: Dune, authors: [Frank Herbert, Frank Herbert], isbn: "9780441172710"}}`
	const v1 = `{apiVersion: library.example.com/v1, kind: Book, metadata: {name: emma}, spec: {title: Emma, authors: [{name: Jane Austen}]}}`
	type webhooks func(...registration.Option) (*registration.Webhooks, error)
	for name, test := range map[string]struct {
		old, new webhooks
		book     string
		want     []string
	}{
		"step 3": {step2.Webhooks, step3.Webhooks, v1alpha1, nil},
		"step 4": {step3.Webhooks, step4.Webhooks, v1alpha1, nil},
		"step 5": {step4.Webhooks, step5.Webhooks, v1alpha1, nil},
		"step 6": {step5.Webhooks, step6.Webhooks, v1alpha1, nil},
		"step 7": {step6.Webhooks, step7.Webhooks, v1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			book := func(yield func(rehearse.Object, error) bool) { yield(rehearse.Object{Text: []byte(test.book)}, nil) }
			report, err := rehearse.Run(t.Context(), releaseOf(t, test.old), releaseOf(t, test.new), book)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range report.Findings {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// releaseOf returns the definition that a step registers, and its webhook.
func releaseOf(t *testing.T, webhooks func(...registration.Option) (*registration.Webhooks, error)) (release rehearse.Release) {
	t.Helper()
	hooks, err := webhooks(registration.Service("library-system", "library"))
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := hooks.Manifests(nil)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(manifests), "---\n") {
		if !strings.Contains(document, "kind: CustomResourceDefinition\n") {
			continue
		}
		d, err := schema.Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		release.Definitions = append(release.Definitions, d)
		if hook := d.CustomResourceDefinition().Spec.Conversion.Webhook; hook != nil {
			release.Webhook = rehearse.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.URL.Path = *hook.ClientConfig.Service.Path
				hooks.ServeHTTP(w, r)
			}))
		}
	}
	return release
}
