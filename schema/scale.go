package schema

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Scale returns the scale subresource of an object, which is as it is stored, in JSON or
// YAML ([Version.Read]). The error is NotFound if the version has no such subresource, and
// InternalError if the object has no replicas, as on the server
// (apiextensions-apiserver/pkg/registry/customresource/etcd.go, ScaleREST.Get).
func (v *Version) Scale(ctx context.Context, stored []byte) (*autoscalingv1.Scale, error) {
	_, r, err := v.begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	u, err := r.read(stored)
	if err != nil {
		return nil, err
	}
	if v.scale == nil {
		return nil, apierrors.NewNotFound(v.resource(), u.GetName())
	}
	scale, found, err := v.scaleOf(u)
	switch {
	case err != nil:
		return nil, internal(err.Error())
	case !found:
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", v.scale.SpecReplicasPath))
	}
	return scale, nil
}

// UpdateScale does what the server does when the scale of an old object, which is as it is
// stored, is replaced: it sets the replicas, and nothing else, and updates the object with
// that ([Version.Update]). The error is NotFound if the version has no such subresource
// (customresource/etcd.go, ScaleREST.Update).
func (v *Version) UpdateScale(ctx context.Context, scale *autoscalingv1.Scale, old []byte, opts ...Option) (*Result, error) {
	_, r, err := v.begin(ctx, opts)
	if err != nil {
		return r.fail(err)
	}
	u, err := r.read(old)
	if err != nil {
		return r.fail(err)
	}
	if v.scale == nil {
		return r.fail(apierrors.NewNotFound(v.resource(), u.GetName()))
	}
	if _, _, err := v.scaleOf(u); err != nil {
		return r.fail(internal(err.Error()))
	}
	if err := unstructured.SetNestedField(u.Object, int64(scale.Spec.Replicas), fields(v.scale.SpecReplicasPath)...); err != nil {
		return r.fail(internal(err.Error()))
	}
	if scale.ResourceVersion != "" {
		u.SetResourceVersion(scale.ResourceVersion)
	}
	object, err := json.Marshal(u.Object)
	if err != nil {
		return r.fail(err)
	}
	return v.Update(ctx, object, old, opts...)
}

// scaleOf is scaleFromCustomResource of customresource/etcd.go; found says whether the
// object has replicas in its spec.
func (v *Version) scaleOf(u *unstructured.Unstructured) (scale *autoscalingv1.Scale, found bool, err error) {
	replicas, found, err := unstructured.NestedInt64(u.Object, fields(v.scale.SpecReplicasPath)...)
	if err != nil {
		return nil, false, err
	}
	status, _, err := unstructured.NestedInt64(u.Object, fields(v.scale.StatusReplicasPath)...)
	if err != nil {
		return nil, false, err
	}
	selector := ""
	if path := v.scale.LabelSelectorPath; path != nil && *path != "" {
		if selector, _, err = unstructured.NestedString(u.Object, fields(*path)...); err != nil {
			return nil, false, err
		}
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              u.GetName(),
			Namespace:         u.GetNamespace(),
			UID:               u.GetUID(),
			ResourceVersion:   u.GetResourceVersion(),
			CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(status), Selector: selector},
	}, found, nil
}
