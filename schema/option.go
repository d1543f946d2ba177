package schema

import (
	"context"
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Option changes how a request is handled.
type Option func(*pipeline.Settings)

// FieldValidation decides what happens to fields that are unknown or duplicate. With
// metav1.FieldValidationStrict the request fails; with metav1.FieldValidationWarn, the
// server's default, there is a warning for each; with metav1.FieldValidationIgnore nothing
// is reported. They are pruned in any case. kubectl sends Strict.
func FieldValidation(directive string) Option {
	return func(s *pipeline.Settings) { s.FieldValidation = directive }
}

// Namespace is the namespace in the URL of a Create, of a kind that has namespaces.
// Without it, that is the namespace in the object, or else default. Other requests are in
// the namespace of the old object, and ignore it.
func Namespace(name string) Option {
	return func(s *pipeline.Settings) { s.Namespace = name }
}

// DryRun makes it a dry run. Nothing is stored here anyway, and the difference is small: on
// the server, what only the storage looks at does not count then. A create may have a
// resourceVersion, and the answer to an update keeps selfLink
// (apiserver/pkg/registry/generic/registry/dryrun.go).
func DryRun() Option {
	return func(s *pipeline.Settings) { s.DryRun = true }
}

// Mutate calls a function where the server calls mutating admission webhooks: after
// pruning and defaulting, before validation. It changes the object in place; what it puts
// there has to be such that it can be written as JSON. An error from it ends the request. Of
// several, the last one is called.
// The server defaults once more after that, but does not prune
// (apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go, callAttrMutatingHook).
func Mutate(f func(ctx context.Context, object map[string]any) error) Option {
	return func(s *pipeline.Settings) {
		s.Mutate = func(ctx context.Context, object map[string]any) error {
			if err := f(ctx, object); err != nil {
				return err
			}
			return throughJSON(object)
		}
	}
}

// throughJSON writes an object as JSON and reads it again, as if a webhook had answered.
func throughJSON(object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("schema: the mutated object: %w", err)
	}
	clear(object)
	return utiljson.Unmarshal(text, &object)
}
