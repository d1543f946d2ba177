package conversion

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// ListMapKeys says which keys identify the elements of a list of the hub: what its schema
// says in x-kubernetes-list-map-keys. The path is one of names joined by dots, such as
// spec.toppings; the elements of lists on the way are not named in it, and * is any name.
// It is a fault if the path or a key is empty, if the path has brackets, and if there are
// no keys.
func ListMapKeys(path string, keys ...string) LosslessOption {
	return func(l *lossless) {
		if err := l.lists.Add(path, keys...); err != nil {
			l.fault("%w", err)
		}
	}
}

// ListMapKeysOf takes all list-map keys from the hub's schema in a definition. It is a
// fault if that has another kind, or no schema of the hub version. Of two options that
// speak of the same list, the last counts.
func ListMapKeysOf(crd *apiextensionsv1.CustomResourceDefinition) LosslessOption {
	return func(l *lossless) {
		if crd == nil {
			l.fault("the CustomResourceDefinition is nil")
			return
		}
		if crd.Spec.Group != l.group || crd.Spec.Names.Kind != l.kind {
			l.fault("CustomResourceDefinition %s is of another kind", crd.Name)
			return
		}
		for _, v := range crd.Spec.Versions {
			if v.Name == l.hub && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				if err := l.lists.AddSchema(v.Schema.OpenAPIV3Schema); err != nil {
					l.fault("CustomResourceDefinition %s, version %s: %w", crd.Name, l.hub, err)
				}
				return
			}
		}
		l.fault("CustomResourceDefinition %s has no schema of version %s", crd.Name, l.hub)
	}
}
