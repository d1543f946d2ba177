package pipeline

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Settings are what the options of a request say.
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
