package offline_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema/offline"
)

// FuzzPatch checks that no bytes make a patch panic, that its errors are a server's, and that
// what it leaves can be read and updated.
func FuzzPatch(f *testing.F) {
	for _, patch := range []string{
		`[{"op":"replace","path":"/spec/size","value":2}]`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"test","path":"/kind","value":"x"}]`,
		`[{"op":"remove","path":"/metadata"}]`, `[{"op":"move","from":"/spec","path":"/status"}]`, `[{"op":"copy","from":"","path":"/spec"}]`, `[]`, `[null]`,
		`{"spec":{"size":3,"size":4}}`, `{"spec":null}`, `{"metadata":{"name":"other"}}`, `{"kind":null}`, `{"metadata":{"finalizers":["a"]}}`, `null`, `"x"`, `{`,
	} {
		for _, json := range []bool{true, false} {
			f.Add([]byte(patch), json, metav1.FieldValidationStrict)
		}
	}
	f.Fuzz(func(t *testing.T, patch []byte, json bool, directive string) {
		r := newGadgets(t)
		ctx := t.Context()
		if _, err := r.Create(ctx, "v1", []byte(gadget("v1", "a", "", ""))); err != nil {
			t.Fatal(err)
		}
		patchType := types.MergePatchType
		if json {
			patchType = types.JSONPatchType
		}
		out, err := r.Patch(ctx, "v1", "", "a", patchType, patch, offline.FieldValidation(directive))
		var status apierrors.APIStatus
		if err != nil && !errors.As(err, &status) {
			t.Fatalf("%q: the error is not a server's: %v", patch, err)
		}
		if err != nil || out.Deleted {
			return
		}
		read, err := r.Get(ctx, "v1", "", "a")
		if err != nil {
			t.Fatalf("%q: %v", patch, err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(read.Object); err != nil {
			t.Fatalf("%q: %v", patch, err)
		}
		if _, err := r.Update(ctx, "v1", read.Object); err != nil {
			t.Fatalf("%q: the object cannot be updated with itself: %v", patch, err)
		}
	})
}
