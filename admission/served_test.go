package admission_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/served"
	"github.com/crdkit/crdkit/test/expect"
)

// A handler says for which requests its functions are called.
func TestServed(t *testing.T) {
	oven := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Oven"}
	mutate := func(context.Context, *unstructured.Unstructured) error { return nil }
	validate := func(context.Context, *unstructured.Unstructured) (field.ErrorList, error) { return nil, nil }
	update := func(_ context.Context, _, _ *unstructured.Unstructured) (field.ErrorList, error) { return nil, nil }
	metadata := func(context.Context, *metav1.PartialObjectMetadata) (field.ErrorList, error) { return nil, nil }
	reg := conversion.NewRegistry(runtime.NewScheme())
	expect.NoError(t, conversion.AddFields(reg, oven.GroupKind().WithVersion("v1beta1"), "v1", conversion.Rename("spec.a", "spec.b")))
	kind := admission.ForKind(oven)
	for name, c := range map[string]struct {
		opts []admission.Option
		want []served.Function
	}{
		"mutating functions come first": {
			[]admission.Option{admission.Validate(validate, kind), admission.Mutate(mutate, kind)},
			[]served.Function{
				{Kind: oven.GroupKind(), Versions: []string{"v1"}, Operations: []string{"CREATE", "UPDATE"}, Mutates: true},
				{Kind: oven.GroupKind(), Versions: []string{"v1"}, Operations: []string{"CREATE", "UPDATE"}},
			},
		},
		"operations and subresources": {
			[]admission.Option{admission.ValidateUpdate(update, kind, admission.Subresource("status")), admission.ValidateDelete(validate, kind), admission.Validate(validate, kind, admission.On("CONNECT"))},
			[]served.Function{
				{Kind: oven.GroupKind(), Versions: []string{"v1"}, Operations: []string{"UPDATE"}, Subresource: "status"},
				{Kind: oven.GroupKind(), Versions: []string{"v1"}, Operations: []string{"DELETE"}},
				{Kind: oven.GroupKind(), Versions: []string{"v1"}, Operations: []string{"CONNECT"}},
			},
		},
		"the versions that a registry converts": {
			[]admission.Option{admission.ValidateDelete(validate, kind), admission.ConvertWith(reg)},
			[]served.Function{{Kind: oven.GroupKind(), Versions: []string{"v1beta1", "v1"}, Operations: []string{"DELETE"}}},
		},
		"a kind that it does not": {
			[]admission.Option{admission.ValidateDelete(validate, admission.ForKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})), admission.ConvertWith(reg)},
			[]served.Function{{Kind: schema.GroupKind{Kind: "Pod"}, Versions: []string{"v1"}, Operations: []string{"DELETE"}}},
		},
		"every version of metadata, and every kind": {
			[]admission.Option{admission.ValidateDelete(metadata, kind), admission.ValidateDelete(metadata), admission.Observe(func(admission.Observation) {})},
			[]served.Function{{Kind: oven.GroupKind(), Operations: []string{"DELETE"}}, {Operations: []string{"DELETE"}}},
		},
	} {
		var h http.Handler = admission.NewHandler(runtime.NewScheme(), c.opts...)
		got, ok := served.By(h)
		if diff := cmp.Diff(served.Info{Functions: c.want}, got); diff != "" || !ok {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
