package apiservertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Stored returns the bytes that a cluster would have in etcd for a custom object: JSON in the
// version in which the object was last stored, without resourceVersion. The namespace is empty for
// a cluster-scoped object. Stored returns an error if the object does not exist.
func (s *Server) Stored(ctx context.Context, resource schema.GroupResource, namespace, name string) ([]byte, error) {
	key := keyOf(resource, namespace, name)
	r, err := s.store.KV.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(r.Kvs) == 0 {
		return nil, fmt.Errorf("apiservertest: %s is not stored", key)
	}
	return r.Kvs[0].Value, nil
}

// keyOf returns the key of an object in the store. The namespace is empty for a cluster-scoped
// object.
func keyOf(resource schema.GroupResource, namespace, name string) string {
	return path.Join(prefix, keyPrefix(resource), namespace, name)
}

// Stored adds custom objects to the store, in the form in which an older release of your operator
// stored them, for tests of upgrades. An object is JSON or YAML in any version of its CRD, which
// must be an initial object, and is stored without admission, defaulting and validation.
//
// An object needs apiVersion, kind and metadata.name. A missing metadata.namespace is "default",
// and a missing uid, creationTimestamp or generation is set as for a new object. The version of the
// object is added to status.storedVersions of the CRD.
func Stored(objects ...[]byte) Option {
	return func(o *options) {
		for i, text := range objects {
			parsed, err := parse(text)
			if err == nil && len(parsed) != 1 {
				err = fmt.Errorf("got %d objects, expected one", len(parsed))
			}
			if err != nil {
				o.errorf("stored object %d: %w", i, err)
				continue
			}
			o.stored = append(o.stored, parsed[0])
		}
	}
}

// putStored stores the objects of [Stored].
func (s *Server) putStored(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		crd, err := definitionOf(definitions, u.GroupVersionKind())
		if err != nil {
			return fmt.Errorf("stored %s %s: no definition has it: %w", u.GetKind(), u.GetName(), err)
		}
		switch namespaced := isNamespaced(crd); {
		case namespaced && u.GetNamespace() == "":
			u.SetNamespace(metav1.NamespaceDefault)
		case !namespaced && u.GetNamespace() != "":
			return fmt.Errorf("stored %s %s: metadata.namespace is %q, and %s is cluster-scoped", u.GetKind(), u.GetName(), u.GetNamespace(), crd.Name)
		}
		if u.GetUID() == "" {
			u.SetUID(uuid.NewUUID())
		}
		if u.GetCreationTimestamp().Time.IsZero() {
			u.SetCreationTimestamp(metav1.NewTime(time.Now()))
		}
		if u.GetGeneration() == 0 {
			u.SetGeneration(1)
		}
		u.SetResourceVersion("")
		text, err := json.Marshal(u.Object)
		if err != nil {
			return err
		}
		resource := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
		key := keyOf(resource, u.GetNamespace(), u.GetName())
		if r, err := s.store.KV.Get(ctx, key); err != nil || len(r.Kvs) > 0 {
			return errors.Join(fmt.Errorf("stored %s %s: another object has the key %s", u.GetKind(), u.GetName(), key), err)
		}
		if _, err := s.store.KV.Put(ctx, key, string(text)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// definitionOf returns the definition of a kind, which has its version.
func definitionOf(definitions []*apiextensionsv1.CustomResourceDefinition, gvk schema.GroupVersionKind) (*apiextensionsv1.CustomResourceDefinition, error) {
	for _, crd := range definitions {
		hasVersion := slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version })
		if hasVersion && crd.Spec.Group == gvk.Group && crd.Spec.Names.Kind == gvk.Kind {
			return crd, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

func isNamespaced(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Scope == apiextensionsv1.NamespaceScoped
}
