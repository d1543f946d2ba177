package schema

import (
	"context"
	"errors"
	"fmt"
	"math"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Scale returns the scale subresource of an object, which is as it is stored, in JSON or
// YAML ([Version.Read]). The error is NotFound if the version has no such subresource, and
// InternalError if the object has no replicas, as on the server
// (apiextensions-apiserver/pkg/registry/customresource/etcd.go, ScaleREST.Get).
func (v *Version) Scale(ctx context.Context, stored []byte) (*autoscalingv1.Scale, error) {
	_, r, err := v.begin(ctx, "get", nil)
	if err != nil {
		return nil, err
	}
	u, err := r.readForScale(stored)
	if err != nil {
		return nil, err
	}
	scale, found, err := v.scaleOf(u)
	switch {
	case err != nil:
		return nil, pipeline.InternalError(err.Error())
	case !found:
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", v.scale.SpecReplicasPath))
	}
	return scale, nil
}

// UpdateScale does what the server does when the scale of an old object, which is as it is
// stored, is replaced: it sets the replicas, and nothing else, and updates the object with
// that ([Version.Update]). The scale has the name of the object; its namespace, uid and
// resourceVersion are compared if they are there. The error is NotFound if the version has
// no such subresource. The functions of [Mutate] are not called: the server shows webhooks
// the scale, not the object (customresource/etcd.go, ScaleREST.Update).
func (v *Version) UpdateScale(ctx context.Context, scale *autoscalingv1.Scale, old []byte, opts ...Option) (*Result, error) {
	ctx, r, err := v.begin(ctx, "put", opts)
	if err != nil {
		return r.fail(err)
	}
	r.Mutate = nil
	stored, err := r.readForScale(old)
	if err != nil {
		return r.fail(err)
	}
	if err := r.checkOptions("UpdateOptions"); err != nil {
		return r.fail(err)
	}
	if scale == nil {
		return r.fail(errors.New("schema: the scale is nil"))
	}
	scale = scale.DeepCopy()
	if err := checkPlace(scale, keyOf(stored)); err != nil {
		return r.fail(err)
	}
	if err := r.checkUID(scale.UID, stored); err != nil {
		return r.fail(err)
	}
	u := stored.DeepCopy()
	if _, _, err := v.scaleOf(u); err != nil {
		return r.fail(pipeline.InternalError(err.Error()))
	}
	if scale.Spec.Replicas == math.MinInt32 {
		return r.fail(apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", v.scale.SpecReplicasPath)))
	}
	if err := unstructured.SetNestedField(u.Object, int64(scale.Spec.Replicas), fields(v.scale.SpecReplicasPath)...); err != nil {
		return r.fail(pipeline.InternalError(err.Error()))
	}
	if scale.ResourceVersion != "" {
		u.SetResourceVersion(scale.ResourceVersion)
	}
	return r.replace(ctx, u, stored, false)
}

// readForScale reads a stored object, if there is a scale subresource.
func (r *request) readForScale(stored []byte) (*unstructured.Unstructured, error) {
	u, err := r.parseOld(stored)
	if err != nil {
		return nil, err
	}
	if r.scale == nil {
		return nil, apierrors.NewNotFound(r.resource(), u.GetName())
	}
	return u, r.restore(u)
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
