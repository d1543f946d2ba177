package reference

import (
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
	c := &checker{target: &Target{resource: Namespaced(schema.GroupResource{Resource: "secrets"})}}
	want := before{{Namespace: "default", Name: "one"}: true, {Namespace: "default", Name: "two"}: false}

	metadataRefs, err := Fields[*metav1.PartialObjectMetadata](Field{Name: "metadata.annotations['a']"}, Field{Name: "metadata.annotations['b']", Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	r := request(admissionv1.Update, old)
	got, err := namedBefore(admission.WithRequest(t.Context(), r), c, r, metadataRefs)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	refs, err := Fields[*unstructured.Unstructured](Field{Name: "metadata.annotations['a']"}, Field{Name: "metadata.annotations['b']", Optional: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err = namedBefore(admission.WithRequest(t.Context(), r), c, r, refs)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, request := range map[string]*admissionv1.AdmissionRequest{"a creation": request(admissionv1.Create, ""), "no request": nil} {
		if got, err := namedBefore(t.Context(), c, request, refs); got != nil || err != nil {
			t.Errorf("%s: %v and %v", name, got, err)
		}
	}
	r = request(admissionv1.Update, "{")
	if got, err := namedBefore(admission.WithRequest(t.Context(), r), c, r, refs); err == nil {
		t.Errorf("what cannot be decoded: %v", got)
	}
}
