package conversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/served"
	"github.com/crdkit/crdkit/test/expect"
)

// Kinds are sorted, and their versions go from old to new.
func TestKinds_Sorted(t *testing.T) {
	reg := conversion.NewRegistry(runtime.NewScheme())
	for _, c := range []struct{ group, version, kind, hub string }{
		{"a.example.com", "v1", "Pan", runtime.APIVersionInternal},
		{"b.example.com", "v1", "Oven", "v2"},
		{"a.example.com", "v1", "Oven", "v2"},
		{"a.example.com", "v1beta1", "Oven", "v2"},
		{"a.example.com", "v1alpha1", "Oven", "v2"},
	} {
		spoke := schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind}
		expect.NoError(t, conversion.AddFields(reg, spoke, c.hub, conversion.Rename("spec.a", "spec.b")))
	}
	want := []conversion.Kind{
		{GroupKind: schema.GroupKind{Group: "a.example.com", Kind: "Oven"}, Hub: "v2", Versions: []string{"v1alpha1", "v1beta1", "v1", "v2"}},
		{GroupKind: schema.GroupKind{Group: "a.example.com", Kind: "Pan"}, Hub: "__internal", Versions: []string{"v1"}},
		{GroupKind: schema.GroupKind{Group: "b.example.com", Kind: "Oven"}, Hub: "v2", Versions: []string{"v1", "v2"}},
	}
	if diff := cmp.Diff(want, reg.Kinds()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, k := range want {
		if diff := cmp.Diff(k.Versions, reg.Versions(k.GroupKind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k, diff)
		}
	}
	if versions := reg.Versions(schema.GroupKind{Group: "c.example.com", Kind: "Oven"}); versions != nil {
		t.Errorf("a kind that is not converted has the versions %s", versions)
	}
	wantServed := served.Info{}
	for _, k := range want {
		wantServed.Conversions = append(wantServed.Conversions, served.Kind{GroupKind: k.GroupKind, Versions: k.Versions})
	}
	if gotServed, _ := served.By(conversion.NewHandler(reg)); !cmp.Equal(wantServed, gotServed) {
		t.Errorf("the handler (-want +got):\n%s", cmp.Diff(wantServed, gotServed))
	}
}
