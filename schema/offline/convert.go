package offline

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// convert returns an object in another version. It is not coerced.
func (r *Resource) convert(ctx context.Context, in *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	to := r.gvk(version).GroupVersion()
	if in.GetAPIVersion() == to.String() {
		return in, nil
	}
	if gvk := in.GroupVersionKind(); gvk.Group != to.Group {
		return nil, fmt.Errorf("%s is unstructured and is not suitable for converting to %q", gvk, to)
	}
	if gv := in.GroupVersionKind().GroupVersion(); r.spec(gv.Version) == nil {
		return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", gv)
	}
	in = in.DeepCopy()
	if r.converter == nil {
		in.SetAPIVersion(to.String())
		return in, nil
	}
	return r.converter.convert(ctx, in, to, r.reviewUID())
}

func (c *converter) convert(ctx context.Context, in *unstructured.Unstructured, to runtimeschema.GroupVersion, uid types.UID) (*unstructured.Unstructured, error) {
	from := in.GroupVersionKind()
	objects, err := c.ask(ctx, in, to, uid)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %v", from, err)
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(objects), 1)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(objects[0].Raw); err != nil {
		return nil, err
	}
	if got := out.GroupVersionKind().GroupVersion(); got != to {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", from, to, got)
	}
	if got := out.GetKind(); got != from.Kind {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid kind (expected %v, received %v)", from, from.Kind, got)
	}
	if err := checkConverted(in, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object: %v", from, err)
	}
	if err := restoreMetadata(in, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid metadata: %v", from, err)
	}
	return out, nil
}
