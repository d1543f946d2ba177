package library

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/webhook/registration"
)

// clients is the version that most clients use.
const clients = "v1alpha1"

func TestShelf_Defaulted(t *testing.T) {
	books := booksIn(t, startServer(t), clients)
	for title, shelf := range map[string]string{"dune": "D", "emma": "E"} {
		out, err := books.Create(t.Context(), object(t, book(clients, title, `{title: `+title+`}`)), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(`{"shelf":"`+shelf+`","title":"`+title+`"}`, specOf(t, out)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestISBN_MistypedIsRefused(t *testing.T) {
	books := booksIn(t, startServer(t), clients)
	for isbn, says := range map[string]string{
		"9780441172719": "",
		"9780441172710": `admission webhook "validate.books.library.example.com" denied the request: Book.library.example.com "x" is invalid: spec.isbn: Invalid value: "9780441172710": a digit is wrong`,
	} {
		_, err := books.Create(t.Context(), object(t, book(clients, "x", `{title: Dune, isbn: "`+isbn+`"}`)), metav1.CreateOptions{})
		if diff := cmp.Diff(says, textOf(err)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestISBN_BookFromBefore(t *testing.T) {
	server := startServer(t, apiservertest.Stored(book(clients, "x", `{title: Dune, isbn: "9780441172710"}`)))
	out, err := booksIn(t, server, clients).Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"pages":688}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"isbn":"9780441172710","pages":688,"title":"Dune"}`, specOf(t, out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// startServer starts an API server in this process, which calls the webhooks. The server stops
// with the test.
func startServer(t *testing.T, opts ...apiservertest.Option) *apiservertest.Server {
	t.Helper()
	hooks, err := Webhooks(registration.Service("library-system", "library"))
	if err != nil {
		t.Fatal(err)
	}
	return apiservertest.Start(t, append(opts, apiservertest.Webhooks(hooks))...)
}

// booksIn returns a client for the books in a version.
func booksIn(t *testing.T, server *apiservertest.Server, version string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	books := schema.GroupVersionResource{Group: "library.example.com", Version: version, Resource: "books"}
	return client.Resource(books).Namespace("default")
}

// object decodes an object in YAML.
func object(t *testing.T, text []byte) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}
