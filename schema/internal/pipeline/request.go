package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

const (
	// MaxRequest is the size of the largest request that the server reads
	// (apiserver/pkg/server/config.go, MaxRequestBodyBytes).
	MaxRequest = 3 << 20
	// MaxTime is how long the server works at a write
	// (apiserver/pkg/endpoints/handlers/rest.go, requestTimeoutUpperBound).
	MaxTime = 34 * time.Second
)

// Timeout is the server's error of a write whose context has ended
// (apiserver/pkg/endpoints/handlers/finisher/finisher.go, FinishRequest).
func Timeout(ended error) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", ended), 0)
}

// InternalError is an error that the server did not mean to return
// (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus).
func InternalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: message,
	}}
}

// Settings are the options of a request.
type Settings struct {
	// FieldValidation is the directive of that name, and empty for the server's default.
	FieldValidation string
	// Namespace is that of a create request, and empty for the one in the object.
	Namespace string
	// DryRun makes it a dry run.
	DryRun bool
	// Mutate is mutating admission, if there is any. It changes the object in place.
	Mutate func(ctx context.Context, object map[string]any) error
	// Staged ends a write before validating admission: its result is what validating
	// webhooks are shown, in the version of the request. Mutate sets defaults itself then.
	Staged bool
	// Key is the namespace and the name in the URL of a staged update, and Old returns the
	// object that is there, as it is read in the version of the request. It is not changed.
	Key types.NamespacedName
	Old func() (*unstructured.Unstructured, error)
	// Decoded is for a patch, whose errors have other words. It is told how decoding the body
	// went, which may be an error of the decoder; an error that it returns ends the request.
	// What an update does and a patch does not is left out then: the version in the body is
	// not looked at, a uid in it is no precondition, and owners are counted after admission
	// alone.
	Decoded func(err error) error
}

// Serve reports whether a version of a definition is served, and returns the warning that each
// answer has if the version is deprecated. The error is that the version does not exist, or
// the server's NotFound, in which verb is the one of HTTP
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
		return "", fmt.Errorf("schema: %s has no version %s: want one of %s", kind, name, strings.Join(names, ", "))
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

// RemoveMetadata removes fields of an object's metadata.
func RemoveMetadata(u *unstructured.Unstructured, names ...string) {
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		for _, name := range names {
			delete(metadata, name)
		}
	}
}
