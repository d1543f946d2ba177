package conversion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// AddUnstructuredSpoke adds the two conversions between a version without a Go type, the spoke,
// which the scheme need not know, and the kind's hub version H. H is a pointer to a Go type, or
// *[unstructured.Unstructured].
//
// If H is unstructured, hubVersion is required, because the type does not determine the version.
// Otherwise hubVersion must be empty, or the version of H.
//
// For the functions and the errors, see [AddSpoke]. AddUnstructuredSpoke also returns an
// error if the version or the kind of the spoke is empty.
//
// The unstructured objects have apiVersion, kind, and metadata without managedFields. Their
// integers are int64, and their other numbers are float64.
func AddUnstructuredSpoke[H runtime.Object](r *Registry, spoke schema.GroupVersionKind, hubVersion string,
	toHub func(ctx context.Context, in *unstructured.Unstructured, out H) error,
	fromHub func(ctx context.Context, in H, out *unstructured.Unstructured) error) error {
	if spoke.Version == "" || spoke.Kind == "" {
		return fmt.Errorf("conversion: %s has no version or no kind", spoke)
	}
	hub := schema.GroupVersionKind{Group: spoke.Group, Version: hubVersion, Kind: spoke.Kind}
	var hubAs representation = unstructuredContent{}
	if t := reflect.TypeFor[H](); t == reflect.TypeFor[*unstructured.Unstructured]() {
		if hubVersion == "" {
			return fmt.Errorf("conversion: the hub of %s is unstructured, and needs a version", spoke)
		}
	} else {
		kind, err := r.kindOf(t)
		if err != nil {
			return err
		}
		if hubVersion != "" && hubVersion != kind.Version {
			return fmt.Errorf("conversion: the hub of %s is %s, and not version %s", spoke, kind, hubVersion)
		}
		hub, hubAs = kind, r.typed(t)
	}
	if toHub == nil || fromHub == nil {
		return fmt.Errorf("conversion: %s needs both functions, to version %s and from it", spoke, hub.Version)
	}
	return r.add(true,
		&step{from: spoke, to: hub, in: unstructuredContent{}, out: hubAs, call: func(ctx context.Context, in, out runtime.Object) error {
			return toHub(ctx, in.(*unstructured.Unstructured), out.(H))
		}},
		&step{from: hub, to: spoke, in: hubAs, out: unstructuredContent{}, call: func(ctx context.Context, in, out runtime.Object) error {
			return fromHub(ctx, in.(H), out.(*unstructured.Unstructured))
		}})
}

// unstructuredContent is the representation by a map.
type unstructuredContent struct{}

func (unstructuredContent) blank(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error) {
	text, err := rawjson.Set(c.object.metadata, "managedFields", nil)
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{}
	if err := codec.Decode(text, &metadata); err != nil {
		return nil, err
	}
	for name, m := range map[string]map[string]string{"labels": p.Labels, "annotations": p.Annotations} {
		values := make(map[string]any, len(m))
		for k, v := range m {
			values[k] = v
		}
		if metadata[name] = values; len(m) == 0 {
			delete(metadata, name)
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": t.APIVersion,
		"kind":       t.Kind,
		"metadata":   metadata,
	}}, nil
}

func (f unstructuredContent) decode(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error) {
	obj, err := f.blank(c, t, p)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := codec.Decode(p.Body, &fields); err != nil {
		return nil, err
	}
	maps.Copy(obj.(*unstructured.Unstructured).Object, fields)
	return obj, nil
}

func (unstructuredContent) encode(c *converter, obj runtime.Object) ([]byte, error) {
	return c.encodeBody(obj.(*unstructured.Unstructured).Object)
}

func (unstructuredContent) metadata(c *converter, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error) {
	content := obj.(*unstructured.Unstructured).Object
	content["apiVersion"], content["kind"] = t.APIVersion, t.Kind
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, nil, errors.New("the conversion function removed metadata, or replaced metadata by a value that is not an object")
	}
	var after metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &after); err != nil {
		return nil, nil, fmt.Errorf("the conversion function returned invalid metadata: %w", err)
	}
	return after.Labels, after.Annotations, checkMetadata(c.before, &after)
}
