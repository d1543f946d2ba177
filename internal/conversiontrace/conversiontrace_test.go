package conversiontrace_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/conversiontrace"
	"github.com/crdkit/crdkit/test/expect"
)

type object = unstructured.Unstructured

func TestFrom_NobodyWasAsked(t *testing.T) {
	if conversiontrace.From(t.Context()) != nil {
		t.Error("there is a tracer")
	}
}

// A watcher sees each function of its own conversion.
// Each function is seen twice, and a later conversion, by the same idle worker, not at all.
func TestWith_OwnConversion(t *testing.T) {
	same := func(_ context.Context, in, out *object) error {
		out.Object["spec"] = in.Object["spec"]
		return nil
	}
	reg := conversion.NewRegistry(runtime.NewScheme())
	gk := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	for _, spoke := range []string{"v1alpha1", "v1beta1"} {
		expect.NoError(t, conversion.AddUnstructuredSpoke(reg, gk.WithVersion(spoke), "v1", same, same))
	}
	var got []string
	ctx := conversiontrace.With(t.Context(), func(c conversiontrace.Call) func() {
		name := c.In.(*object).GetName()
		got = append(got, "before "+name+" "+c.From.Version+" "+c.To.Version)
		return func() { got = append(got, "after "+c.Out.(*object).GetName()) }
	})
	text := []byte(`{"apiVersion":"example.com/v1alpha1","kind":"Thing","metadata":{"name":"a"},"spec":1}`)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		_, err := reg.Convert(ctx, text, schema.GroupVersion{Group: "example.com", Version: "v1beta1"})
		expect.NoError(t, err)
	}
	want := []string{"before a v1alpha1 v1", "after a", "before a v1 v1beta1", "after a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An object goes through its hub.
// The functions are called although the object has the version already.
func TestThroughHub(t *testing.T) {
	seen := func(_ context.Context, in, out *object) error {
		out.Object["seen"] = fmt.Sprint(in.Object["seen"], " ", in.GroupVersionKind().Version)
		return nil
	}
	reg := conversion.NewRegistry(runtime.NewScheme())
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	expect.NoError(t, conversion.AddUnstructuredSpoke(reg, gv.WithKind("Thing"), "v2", seen, seen))
	text := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"seen":"by"}`
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{
		{conversiontrace.ThroughHub(t.Context()), `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"seen":"by v1 v2"}`},
		{t.Context(), text},
	} {
		got, err := reg.Convert(c.ctx, []byte(text), gv)
		expect.NoError(t, err)
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
