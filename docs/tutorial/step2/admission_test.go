package library

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
	"github.com/crdkit/crdkit/webhook/registration"
)

func TestABookGetsItsShelf(t *testing.T) {
	books := offlineBooks(t)
	for title, shelf := range map[string]string{"dune": "D", "emma": "E"} {
		out, err := books.Create(t.Context(), "v1alpha1", book("v1alpha1", title, `{title: `+title+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"shelf":"`+shelf+`","title":"`+title+`"}`, specOf(t, out)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAMistypedISBNIsRefused(t *testing.T) {
	books := offlineBooks(t)
	for isbn, says := range map[string]string{
		"9780441172719": "",
		"9780441172710": `admission webhook "validate.books.library.example.com" denied the request: Book.library.example.com "x" is invalid: spec.isbn: Invalid value: "9780441172710": a digit is wrong`,
	} {
		_, err := books.Create(t.Context(), "v1alpha1", book("v1alpha1", "x", `{title: Dune, isbn: "`+isbn+`"}`))
		if diff := cmp.Diff(says, textOf(err)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestABookFromBeforeIsLeftAlone(t *testing.T) {
	old := book("v1alpha1", "x", `{title: Dune, isbn: "9780441172710"}`)
	out, err := offlineBooks(t, offline.Stored(old)).Patch(t.Context(), "v1alpha1", "default", "x", types.MergePatchType, []byte(`{"spec":{"pages":688}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"isbn":"9780441172710","pages":688,"title":"Dune"}`, specOf(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// offlineBooks are books without a server, and with the webhooks as they are registered.
func offlineBooks(t *testing.T, opts ...offline.Option) *offline.Resource {
	t.Helper()
	hooks, err := Webhooks(registration.Service("library-system", "library"))
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := hooks.Manifests(nil)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(manifests), "---\n")[1:]
	crd, err := schema.Parse([]byte(documents[0]))
	if err != nil {
		t.Fatal(err)
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := errors.Join(yaml.Unmarshal([]byte(documents[1]), &mutating), yaml.Unmarshal([]byte(documents[2]), &validating)); err != nil {
		t.Fatal(err)
	}
	books, err := offline.New(crd, append(opts, offline.Mutate(hooks, mutating.Webhooks...), offline.Validate(hooks, validating.Webhooks...))...)
	if err != nil {
		t.Fatal(err)
	}
	return books
}
