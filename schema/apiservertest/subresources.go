package apiservertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// scalable returns the replicas of an object that has the subresource scale, what its status says of them, and its selector.
func scalable(obj runtime.Object) (replicas **int32, current int32, selector *metav1.LabelSelector) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *appsv1.ReplicaSet:
		return &o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *appsv1.StatefulSet:
		return &o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
	case *corev1.ReplicationController:
		return &o.Spec.Replicas, o.Status.Replicas, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
	}
	return nil, 0, nil
}

// scaleREST serves the subresource scale (kubernetes/pkg/registry/apps/deployment/storage/storage.go, ScaleREST).
type scaleREST struct {
	store *registry.Store
	gv    schema.GroupVersion
}

var _ rest.Patcher = scaleREST{}

func (scaleREST) New() runtime.Object { return &autoscalingv1.Scale{} }
func (scaleREST) Destroy()            {}
func (scaleREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

func (r scaleREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

func (r scaleREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj)
}

func scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	replicas, current, labelSelector := scalable(obj)
	selector, err := metav1.LabelSelectorAsSelector(labelSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	meta := obj.(metav1.Object)
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: meta.GetName(), Namespace: meta.GetNamespace(), UID: meta.GetUID(),
			ResourceVersion: meta.GetResourceVersion(), CreationTimestamp: meta.GetCreationTimestamp(),
		},
		Status: autoscalingv1.ScaleStatus{Replicas: current, Selector: selector.String()},
	}
	if *replicas != nil {
		scale.Spec.Replicas = **replicas
	}
	return scale, nil
}

func (r scaleREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, scaleInfo{info, r.gv}, rest.ValidateAllObjectFunc, func(ctx context.Context, obj, old runtime.Object) error {
		scale, err := scaleOf(obj)
		oldScale, oldErr := scaleOf(old)
		if err = errors.Join(err, oldErr); err != nil {
			return err
		}
		return validate(ctx, scale, oldScale)
	}, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := scaleOf(obj)
	return scale, false, err
}

// scaleInfo updates an object by an update of its scale.
type scaleInfo struct {
	rest.UpdatedObjectInfo
	gv schema.GroupVersion
}

func (i scaleInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj := old.DeepCopyObject()
	meta := obj.(metav1.Object)
	fields := managedfields.NewScaleHandler(meta.GetManagedFields(), i.gv, managedfields.ResourcePathMappings{i.gv.String(): fieldpath.MakePathOrDie("spec", "replicas")})
	oldScale, err := scaleOf(obj)
	if err != nil {
		return nil, err
	}
	if oldScale.ManagedFields, err = fields.ToSubresource(); err != nil {
		return nil, err
	}
	updated, err := i.UpdatedObjectInfo.UpdatedObject(ctx, oldScale)
	if err != nil {
		return nil, err
	}
	scale := updated.(*autoscalingv1.Scale)
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), scale.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	replicas, _, _ := scalable(obj)
	*replicas = &scale.Spec.Replicas
	meta.SetResourceVersion(scale.ResourceVersion)
	entries, err := fields.ToParent(scale.ManagedFields)
	meta.SetManagedFields(entries)
	return obj, err
}

// typeConverter converts objects of the kinds, too, that client-go's apply configurations lack, because clients do not apply them.
type typeConverter struct{ managedfields.TypeConverter }

func (c typeConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch obj.GetObjectKind().GroupVersionKind().Kind {
	case "Binding", "LocalSubjectAccessReview", "Scale", "SelfSubjectAccessReview", "SubjectAccessReview":
		return managedfields.NewDeducedTypeConverter().ObjectToTyped(obj, opts...)
	}
	return c.TypeConverter.ObjectToTyped(obj, opts...)
}

// bindingREST assigns a Pod to a node (kubernetes/pkg/registry/core/pod/storage/storage.go, BindingREST).
type bindingREST struct{ pods *registry.Store }

var _ rest.NamedCreater = bindingREST{}

func (bindingREST) New() runtime.Object                                            { return &corev1.Binding{} }
func (bindingREST) Destroy()                                                       {}
func (bindingREST) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

func (r bindingREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	binding := obj.(*corev1.Binding)
	if name != binding.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if binding.Target.Name == "" {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), name, field.ErrorList{field.Required(field.NewPath("target", "name"), "")})
	}
	if err := validate(ctx, binding.DeepCopyObject()); err != nil {
		return nil, err
	}
	key, err := r.pods.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	conditions := &storage.Preconditions{}
	if binding.UID != "" {
		conditions.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		conditions.ResourceVersion = &binding.ResourceVersion
	}
	err = r.pods.Storage.GuaranteedUpdate(ctx, key, &corev1.Pod{}, false, conditions, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		pod := obj.(*corev1.Pod)
		switch conflict := func(why string) error {
			return apierrors.NewConflict(corev1.Resource("pods/binding"), name, errors.New("pod "+name+" "+why))
		}; {
		case pod.DeletionTimestamp != nil:
			return nil, conflict("is being deleted, cannot be assigned to a host")
		case pod.Spec.NodeName != "":
			return nil, conflict(fmt.Sprintf("is already assigned to node %q", pod.Spec.NodeName))
		case len(pod.Spec.SchedulingGates) > 0:
			return nil, conflict("has non-empty .spec.schedulingGates")
		}
		pod.Spec.NodeName = binding.Target.Name
		pod.Annotations, pod.Labels = labels.Merge(pod.Annotations, binding.Annotations), labels.Merge(pod.Labels, binding.Labels)
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		return pod, nil
	}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		return nil, storeerr.InterpretUpdateError(storeerr.InterpretGetError(err, corev1.Resource("pods"), name), corev1.Resource("pods"), name)
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}
