package offline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
)

// Admission and validation would refuse this object, and its version has another name for
// the field than the storage version.
func TestAnObjectIsStoredAsItIs(t *testing.T) {
	definition := define(t, storeInV2)
	r, err := offline.New(definition, offline.Validate(gadgetHandler()), offline.Stored([]byte("apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: old}\nspec: {size: 0, gone: true}\n")))
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Get(t.Context(), "v1", "", "old")
	if err != nil {
		t.Fatal(err)
	}
	const metadata = `"metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","generation":1,"name":"old","namespace":"default"`
	want := &schema.Result{
		Object: []byte(`{"apiVersion":"example.com/v1","kind":"Gadget",` + metadata + `,"resourceVersion":"1","uid":"00000000-0000-4000-8000-000000000001"},"spec":{"color":"grey","size":0,"stored":"here"}}`),
		Stored: []byte(`{"apiVersion":"example.com/v1","kind":"Gadget",` + metadata + `,"uid":"00000000-0000-4000-8000-000000000001"},"spec":{"gone":true,"size":0}}`),
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMistakesInStoredObjectsAreFoundWhenItIsMade(t *testing.T) {
	good := []byte(gadget("v1", "a", "", ""))
	_, err := offline.New(define(t), offline.Stored(good, good, []byte("{"), []byte("- 1"), []byte(gadget("v9", "b", "", "")), []byte(gadget("v1", "b-", "", ""))),
		offline.Stored([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)))
	want := `offline: gadgets.example.com: stored object 2: default/a is there already
stored object 3: unexpected end of JSON input
stored object 4: json: cannot unmarshal array into Go value of type map[string]interface {}
stored object 5: it is a example.com/v9, Kind=Gadget, not a Gadget.example.com in one of the versions v2, v1, v1alpha1
stored object 6: it has no metadata.name
stored object 7: it is a /v1, Kind=Pod, not a Gadget.example.com in one of the versions v2, v1, v1alpha1`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = offline.New(define(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }),
		offline.Stored([]byte(withMetadata(gadget("v1", "a", "", ""), "namespace", "x"))))
	if want := "offline: gadgets.example.com: stored object 1: it is in the namespace x, and gadgets are in none"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
