package apiservertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/dynamic"
	kjson "sigs.k8s.io/json"
)

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// createFirst stores CRDs and objects of built-in kinds before the server runs, so that all
// informers of the server find them when they start. It returns the CRDs.
func (s *Server) createFirst(ctx context.Context, getter generic.RESTOptionsGetter, o *options) (crds []*apiextensionsv1.CustomResourceDefinition, err error) {
	definitions, err := customresourcedefinition.NewREST(extensions.Scheme, getter)
	if err != nil {
		return nil, err
	}
	defer definitions.Destroy()
	ctx = genericapirequest.WithNamespace(ctx, metav1.NamespaceNone)
	for _, u := range o.objects {
		switch gvk := u.GroupVersionKind(); {
		case gvk == definitionKind:
			var crd *apiextensionsv1.CustomResourceDefinition
			crd, err = createDefinition(ctx, definitions, u, o.stored, s.rules.validate)
			crds = append(crds, crd)
		case s.builtins[gvk] != nil:
			err = s.createBuiltin(ctx, u)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if at := serviceOf(u); at != "" && o.handler == nil {
			return nil, fmt.Errorf("%s %s: %s names a Service, and there is no handler: add Handler or Webhooks", u.GetKind(), u.GetName(), at)
		}
	}
	var defaults []runtime.Object
	for _, name := range []string{metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic, metav1.NamespaceSystem} {
		defaults = append(defaults, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if o.rbac {
		defaults = append(defaults, defaultRoles()...)
	}
	for _, obj := range defaults {
		u, err := toUnstructured(obj)
		if err == nil {
			err = s.createBuiltin(ctx, u)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return crds, s.putStored(ctx, crds, o.stored)
}

// serviceOf returns the path of a webhook of an object that is behind a Service, if there is one.
func serviceOf(u *unstructured.Unstructured) string {
	if _, found, _ := unstructured.NestedMap(u.Object, "spec", "conversion", "webhook", "clientConfig", "service"); found {
		return "spec.conversion.webhook.clientConfig"
	}
	webhooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	for i, w := range webhooks {
		if w, ok := w.(map[string]any); ok {
			if _, found, _ := unstructured.NestedMap(w, "clientConfig", "service"); found {
				return fmt.Sprintf("webhooks[%d].clientConfig", i)
			}
		}
	}
	return ""
}

// decode returns an error that names the field which is unknown or of another type.
func decode(u *unstructured.Unstructured, into runtime.Object) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(strict) > 0 {
		err = runtime.NewStrictDecodingError(strict)
	}
	return err
}

// createDefinition stores a CRD with the status that the controllers of the server would set.
// The times in the status are an hour ago, because the server delays creations for two seconds
// after a CRD has been established
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, serveResource).
func createDefinition(ctx context.Context, definitions *customresourcedefinition.REST, u *unstructured.Unstructured, stored []*unstructured.Unstructured, validate rest.ValidateObjectFunc) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := decode(u, crd); err != nil {
		return nil, err
	}
	extensions.Scheme.Default(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := extensions.Scheme.Convert(crd, internal, nil); err != nil {
		return nil, err
	}
	obj, err := definitions.Create(ctx, internal, validate, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	created := established(obj.(*apiextensions.CustomResourceDefinition))
	for _, u := range stored {
		gvk := u.GroupVersionKind()
		if gvk.GroupKind() == (schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}) && !slices.Contains(created.Status.StoredVersions, gvk.Version) {
			created.Status.StoredVersions = append(created.Status.StoredVersions, gvk.Version)
		}
	}
	_, _, err = customresourcedefinition.NewStatusREST(extensions.Scheme, definitions).Update(ctx, crd.Name,
		rest.DefaultUpdatedObjectInfo(created),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return crd, err
}

func established(crd *apiextensions.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	crd.Status.AcceptedNames = crd.Spec.Names
	past := metav1.NewTime(time.Now().Add(-time.Hour))
	crd.Status.Conditions = []apiextensions.CustomResourceDefinitionCondition{
		{Type: apiextensions.NamesAccepted, Status: apiextensions.ConditionTrue, LastTransitionTime: past, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensions.Established, Status: apiextensions.ConditionTrue, LastTransitionTime: past, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	}
	return crd
}

func (s *Server) createBuiltin(ctx context.Context, u *unstructured.Unstructured) error {
	store := s.builtins[u.GroupVersionKind()]
	obj := store.New()
	if err := decode(u, obj); err != nil {
		return err
	}
	setDefaults(obj)
	meta := obj.(metav1.Object)
	if store.CreateStrategy.NamespaceScoped() && meta.GetNamespace() == "" {
		meta.SetNamespace(metav1.NamespaceDefault)
	}
	ctx = genericapirequest.WithNamespace(ctx, meta.GetNamespace())
	_, err := store.Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

// createRest creates the custom objects, as a client does.
func (s *Server) createRest(ctx context.Context, objects []*unstructured.Unstructured, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	for _, u := range objects {
		gvk := u.GroupVersionKind()
		if gvk == definitionKind || s.builtins[gvk] != nil {
			continue
		}
		crd, err := definitionOf(definitions, gvk)
		if err == nil {
			namespace := u.GetNamespace()
			if namespace == "" && isNamespaced(crd) {
				namespace = metav1.NamespaceDefault
			}
			_, err = client.Resource(gvk.GroupVersion().WithResource(crd.Spec.Names.Plural)).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}
