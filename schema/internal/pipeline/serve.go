package pipeline

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Serve reports whether a version of a definition is served, and returns the warning that each
// answer has if the version is deprecated. The error says that there is no such version, or
// has the server's NotFound, in which verb is the one of HTTP
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, ServeHTTP).
func Serve(crd *apiextensionsv1.CustomResourceDefinition, name, verb string) (warning string, err error) {
	var served *apiextensionsv1.CustomResourceDefinitionVersion
	var names []string
	for i, v := range crd.Spec.Versions {
		names = append(names, v.Name)
		if v.Name == name {
			served = &crd.Spec.Versions[i]
		}
	}
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	switch {
	case served == nil:
		byPriority(names)
		return "", fmt.Errorf("schema: %s has no version %s: there are %s", kind, name, strings.Join(names, ", "))
	case !served.Served:
		resource := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
		return "", fmt.Errorf("schema: version %s of %s is not served: %w", name, kind, apierrors.NewGenericServerResponse(404, verb, resource, "", "", 0, false))
	case served.Deprecated:
		return deprecation(crd, served), nil
	}
	return "", nil
}

// deprecation is defaultDeprecationWarning of customresource_handler.go.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if w := v.DeprecationWarning; w != nil {
		return *w
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	var better []string
	for _, other := range crd.Spec.Versions {
		if other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0 {
			better = append(better, other.Name)
		}
	}
	if len(better) == 0 {
		return text
	}
	byPriority(better)
	return text + fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, better[0], crd.Spec.Names.Kind)
}

// byPriority sorts the names of versions, the one of the highest priority first.
func byPriority(names []string) {
	slices.SortFunc(names, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
}
