package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage"

	"github.com/crdkit/crdkit/schema"
)

func (c *command) validate() *cobra.Command {
	var crds []string
	var directive, namespace string
	cmd := &cobra.Command{
		Use:   "validate --crd FILE OBJECT...",
		Short: "Report what the API server would refuse in objects",
		Long: `Report whether the API server would create objects, and with which errors and warnings.

Objects may also be those that a cluster has stored, as kubectl get prints them. What
the server sets itself is left out then: resourceVersion, uid, creationTimestamp,
generation, managedFields and selfLink. A status is checked as if it were created with the
rest, even where the server would take it only as a subresource.`,
		Example: `  # Check objects before they are created
  crdcheck validate --crd config/crd config/samples

  # Check whether stored objects are valid under the next definition
  kubectl get pizzas -A -o yaml | crdcheck validate --crd new.yaml -

  # Unknown fields are no fault
  crdcheck validate --crd crd.yaml --validate=ignore pizza.yaml`,
		Args: atLeast(1, "a file with objects"),
		RunE: func(cmd *cobra.Command, args []string) error {
			directives := map[string]string{
				"true": metav1.FieldValidationStrict, "strict": metav1.FieldValidationStrict,
				"warn": metav1.FieldValidationWarn, "ignore": metav1.FieldValidationIgnore, "false": metav1.FieldValidationIgnore,
			}
			if directives[directive] == "" {
				return fmt.Errorf("invalid - validate option %q; must be one of: strict (or true), warn, ignore (or false)", directive)
			}
			var opts []schema.Option
			if namespace != "" {
				opts = append(opts, schema.Namespace(namespace))
			}
			return c.check(cmd.Context(), crds, args, func(s subject, a *answer) {
				s.validate(cmd.Context(), a, directives[directive], opts)
			})
		},
	}
	cmd.Flags().StringArrayVar(&crds, "crd", nil, "A file or directory with the definitions, or - for standard input. May be given more than once.")
	if err := cmd.MarkFlagRequired("crd"); err != nil {
		panic(err) // it is not there
	}
	cmd.Flags().StringVar(&directive, "validate", "strict", "What to do about unknown and duplicate fields. One of: (strict, warn, ignore).")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "The namespace of the request. Without it, that of the object, or default.")
	return cmd
}

// validate fills in what is wrong with an object.
func (s subject) validate(ctx context.Context, a *answer, directive string, opts []schema.Option) {
	warnings, err := s.create(ctx, append(opts, schema.FieldValidation(directive))...)
	if len(s.duplicates) > 0 {
		switch directive {
		case metav1.FieldValidationStrict:
			// As the server says it of a document of its own.
			a.refuse(fmt.Errorf("%s in version %q cannot be handled as a %s: strict decoding error: yaml: unmarshal errors:\n  %s",
				s.Kind, s.gvk().Version, s.Kind, strings.Join(s.duplicates, "\n  ")))
		case metav1.FieldValidationWarn:
			warnings = append(slices.Clone(s.duplicates), warnings...)
		}
	}
	if err != nil {
		a.refuse(err)
	}
	if err != nil && directive == metav1.FieldValidationStrict && strings.Contains(err.Error(), "strict decoding error: ") {
		// The server looks no further, but the author of the object wants to know the rest.
		if warnings, err = s.create(ctx, append(opts, schema.FieldValidation(metav1.FieldValidationIgnore))...); err != nil {
			a.refuse(err)
		}
	}
	a.Warnings = warnings
}

// create creates an object, be it new or stored.
func (s subject) create(ctx context.Context, opts ...schema.Option) (warnings []string, err error) {
	created, err := s.version.Create(ctx, s.text, opts...)
	if err != nil && err.Error() == storage.ErrResourceVersionSetOnCreate.Error() {
		err = nil // only an object that is stored has one
	}
	if err == nil || apierrors.IsInvalid(err) {
		// A create takes away the status before it validates, if that is a subresource.
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(s.asJSON) == nil && u.Object["status"] != nil && s.name != "" {
			if prefix := u.GetGenerateName(); u.GetName() == "" {
				u.SetName(prefix[:min(len(prefix), 58)] + "xxxxx") // as a create does
			}
			s.version.Prune(u.Object)
			s.version.Default(u.Object)
			if errs := s.version.Validate(ctx, u.Object); len(errs) > 0 {
				err = apierrors.NewInvalid(s.gvk().GroupKind(), s.name, errs)
			}
		}
	}
	for i, w := range created.Warnings {
		created.Warnings[i] = shiftLines(w, s.before)
	}
	var status *apierrors.StatusError
	if s.before > 0 && errors.As(err, &status) && status.ErrStatus.Details == nil {
		status.ErrStatus.Message = shiftLines(status.ErrStatus.Message, s.before)
	}
	return created.Warnings, err
}
