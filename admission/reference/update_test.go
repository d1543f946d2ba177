package reference

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/admission"
)

// What an object named before is found for all types of objects.
func TestWhatAnObjectNamedBeforeTheUpdate(t *testing.T) {
	request := func(op admissionv1.Operation, old string) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{
			Kind:      metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Oven"},
			Namespace: "default",
			Operation: op,
			OldObject: runtime.RawExtension{Raw: []byte(old)},
		}
	}
	const old = `{"apiVersion":"example.com/v1","kind":"Oven","metadata":{"name":"x","annotations":{"a":"one","b":"two"}}}`
	target := Namespaced(schema.GroupResource{Resource: "secrets"})
	want := before{{Namespace: "default", Name: "one"}: true, {Namespace: "default", Name: "two"}: false}

	metadataRefs, err := Fields[*metav1.PartialObjectMetadata](Field{Name: "metadata.annotations['a']"}, Field{Name: "metadata.annotations['b']", Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	refs, err := Fields[*unstructured.Unstructured](Field{Name: "metadata.annotations['a']"}, Field{Name: "metadata.annotations['b']", Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	m, gone := &metav1.ObjectMeta{Name: "x"}, &metav1.ObjectMeta{Name: "x", DeletionTimestamp: new(metav1.Now())}
	for name, c := range map[string]struct {
		request  *admissionv1.AdmissionRequest
		object   metav1.Object
		before   before
		deleting bool
	}{
		"an update":                                       {request: request(admissionv1.Update, old), object: m, before: want},
		"an update that sets a deletion":                  {request: request(admissionv1.Update, old), object: gone, before: want},
		"an update while it is deleted":                   {request: request(admissionv1.Update, strings.Replace(old, `"name"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","name"`, 1)), object: m, before: want, deleting: true},
		"an old object that cannot be read":               {request: request(admissionv1.Update, "{"), object: gone},
		"an update without an old object":                 {request: request(admissionv1.Update, ""), object: gone},
		"a creation":                                      {request: request(admissionv1.Create, ""), object: m},
		"a creation that sets a deletion":                 {request: request(admissionv1.Create, ""), object: gone},
		"no request":                                      {object: m},
		"no request, for an object that is being deleted": {object: gone, deleting: true},
	} {
		ctx := t.Context()
		if c.request != nil {
			ctx = admission.WithRequest(ctx, c.request)
		}
		got, deleting := stored(ctx, target, c.object, c.request, metadataRefs)
		if diff := cmp.Diff(c.before, got); diff != "" || deleting != c.deleting {
			t.Errorf("%s: it is being deleted: %t (-want +got):\n%s", name, deleting, diff)
		}
	}
	r := request(admissionv1.Update, old)
	if got, _ := stored(admission.WithRequest(t.Context(), r), target, m, r, refs); !cmp.Equal(want, got) {
		t.Errorf("of unstructured objects (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// The request for a Namespace has its own name as namespace.
func TestANamespaceIsInNoNamespace(t *testing.T) {
	request := &admissionv1.AdmissionRequest{Namespace: "kitchen", Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"}}
	if got := namespaceOf(&metav1.ObjectMeta{Name: "kitchen"}, request); got != "" {
		t.Errorf("a Namespace is in %q", got)
	}
	request.Resource.Resource = "secrets"
	if got := namespaceOf(&metav1.ObjectMeta{Name: "oven"}, request); got != "kitchen" {
		t.Errorf("a Secret is in %q", got)
	}
}
