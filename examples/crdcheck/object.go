package crdcheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
)

// answer is what becomes of an object.
type answer struct {
	File     string               `json:"file"`
	Line     int                  `json:"line"`
	Object   string               `json:"object"` // such as pizza.restaurant.example.com/margherita
	Valid    *bool                `json:"valid,omitempty"`
	Message  string               `json:"message,omitempty"`
	Causes   []metav1.StatusCause `json:"causes,omitempty"`
	Warnings []string             `json:"warnings,omitempty"`
	Pruned   []string             `json:"pruned,omitempty"`
	Result   json.RawMessage      `json:"result,omitempty"`
}

// subject is an object and its definition's version.
type subject struct {
	document
	object
	version *schema.Version
}

func (s subject) name() string {
	gv, _ := runtimeschema.ParseGroupVersion(s.APIVersion) // it has been parsed before
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(s.Kind), gv.Group, s.Metadata.Name)
}

func (c *command) validate() *cobra.Command {
	var crds []string
	var directive, namespace string
	cmd := &cobra.Command{
		Use:   "validate --crd FILE OBJECT...",
		Short: "Report what the API server would refuse in objects",
		Long: `Report whether the API server would create objects, and with which errors and warnings. The
status, where it is a subresource, is checked as an update of it would be.`,
		Example: `  # Check objects as kubectl apply would
  crdcheck validate --crd config/crd config/samples

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
			opts := []schema.Option{schema.FieldValidation(directives[directive])}
			if namespace != "" {
				opts = append(opts, schema.Namespace(namespace))
			}
			return c.objects(cmd.Context(), "validate", crds, args, func(s subject) (answer, error) {
				warnings, err := create(cmd.Context(), s, opts)
				a := answer{Valid: new(err == nil), Warnings: warnings}
				if err != nil {
					a.Message = err.Error()
					var status apierrors.APIStatus
					if errors.As(err, &status) && status.Status().Details != nil {
						a.Causes = status.Status().Details.Causes
					}
				}
				return a, nil
			})
		},
	}
	crdFlag(cmd, &crds)
	cmd.Flags().StringVar(&directive, "validate", "strict", "What to do about unknown and duplicate fields. One of: (strict, warn, ignore).")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "The namespace of the request. Without it, that of the object, or default.")
	return cmd
}

// create creates an object and its status.
func create(ctx context.Context, s subject, opts []schema.Option) (warnings []string, err error) {
	created, err := s.version.Create(ctx, s.json, opts...)
	if err != nil {
		return created.Warnings, err
	}
	var o struct {
		Status json.RawMessage `json:"status"`
	}
	if json.Unmarshal(s.json, &o) != nil || o.Status == nil || created.Stored == nil || s.Metadata.Name == "" {
		return created.Warnings, nil
	}
	updated, err := s.version.UpdateStatus(ctx, s.json, created.Stored, opts...)
	if apierrors.IsNotFound(err) { // it is no subresource, and has been checked
		return created.Warnings, nil
	}
	for _, w := range updated.Warnings {
		if !slices.Contains(created.Warnings, w) {
			created.Warnings = append(created.Warnings, w)
		}
	}
	return created.Warnings, err
}

func (c *command) prune() *cobra.Command {
	var crds []string
	cmd := &cobra.Command{
		Use:   "prune --crd FILE OBJECT...",
		Short: "Print objects without the fields that the API server would prune",
		Long: `Print objects without the fields that the schema does not have, as the API server would
store them, and say which those are. The exit code is 1 if there are any.`,
		Args: atLeast(1, "a file with objects"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.objects(cmd.Context(), "prune", crds, args, func(s subject) (answer, error) {
				u, err := s.decode()
				if err != nil {
					return answer{}, err
				}
				pruned := s.version.Prune(u.Object)
				result, err := json.Marshal(u.Object)
				return answer{Pruned: pruned, Result: result}, err
			})
		},
	}
	crdFlag(cmd, &crds)
	return cmd
}

func (c *command) setDefaults() *cobra.Command {
	var crds []string
	cmd := &cobra.Command{
		Use:   "default --crd FILE OBJECT...",
		Short: "Print objects with the defaults that the API server would set",
		Args:  atLeast(1, "a file with objects"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.objects(cmd.Context(), "default", crds, args, func(s subject) (answer, error) {
				u, err := s.decode()
				if err != nil {
					return answer{}, err
				}
				s.version.Default(u.Object)
				result, err := json.Marshal(u.Object)
				return answer{Result: result}, err
			})
		},
	}
	crdFlag(cmd, &crds)
	return cmd
}

// crdFlag adds the flag for definitions.
func crdFlag(cmd *cobra.Command, crds *[]string) {
	cmd.Flags().StringSliceVar(crds, "crd", nil, "Files or directories with the definitions.")
}

func (s subject) decode() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(s.json)
}

// objects calls f with each object, and prints the answers.
func (c *command) objects(ctx context.Context, what string, crds, paths []string, f func(s subject) (answer, error)) error {
	if len(crds) == 0 {
		return fmt.Errorf("--crd must be specified\nSee 'crdcheck %s --help' for usage", what)
	}
	if slices.Contains(crds, "-") && slices.Contains(paths, "-") {
		return errors.New("standard input has either definitions or objects, not both")
	}
	definitions := map[runtimeschema.GroupKind]*schema.Definition{}
	for _, d := range c.parse(crds) {
		definitions[d.GroupKind()] = d
	}
	if c.failed {
		return nil // of a definition that cannot be used, nothing can be said
	}
	subjects := c.subjects(definitions, paths)
	answers := []answer{}
	c.each(ctx, what, len(subjects), func(i int) string { return subjects[i].name() }, func(i int) error {
		s := subjects[i]
		a, err := f(s)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", s.file, s.content(), err)
		}
		a.File, a.Line, a.Object = s.file, s.content(), s.name()
		if a.Valid != nil && !*a.Valid || len(a.Pruned) > 0 {
			c.findings++
		}
		answers = append(answers, a)
		return nil
	})
	if c.output == "json" {
		return c.json(struct {
			Objects []answer `json:"objects"`
		}{answers})
	}
	for i, a := range answers {
		if err := c.print(a, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// print prints an answer as text.
func (c *command) print(a answer, first bool) error {
	for _, w := range a.Warnings {
		fmt.Fprintf(c.errOut, "Warning: %s\n", w)
	}
	for _, path := range a.Pruned {
		fmt.Fprintf(c.errOut, "%s:%d: %s: %s is pruned\n", a.File, a.Line, a.Object, path)
	}
	switch {
	case a.Valid != nil && *a.Valid:
		fmt.Fprintf(c.out, "%s valid\n", a.Object)
	case a.Valid != nil:
		fmt.Fprintf(c.out, "%s invalid\n", a.Object)
		if len(a.Causes) < 2 {
			fmt.Fprintf(c.out, "    %s:%d: %s\n", a.File, a.Line, indent(a.Message))
			return nil
		}
		fmt.Fprintf(c.out, "    %s:%d:\n", a.File, a.Line)
		for _, cause := range a.Causes {
			fmt.Fprintf(c.out, "    * %s: %s\n", cmp.Or(cause.Field, "<nil>"), indent(cause.Message))
		}
	case a.Result != nil:
		text, err := yaml.JSONToYAML(a.Result)
		if err != nil {
			return err
		}
		if !first {
			fmt.Fprintln(c.out, "---")
		}
		_, err = c.out.Write(text)
		return err
	}
	return nil
}

// parse compiles the definitions of files.
func (c *command) parse(paths []string) (definitions []*schema.Definition) {
	for _, f := range c.read(paths) {
		text, n := f.definitions()
		if n == 0 && f.named && len(text) == 0 {
			c.fail(fmt.Errorf("%s: there is no CustomResourceDefinition", f.name))
			continue
		}
		found, err := schema.ParseAll(text)
		if err != nil {
			c.fail(fmt.Errorf("%s: %w", f.name, err))
		}
		definitions = append(definitions, found...)
	}
	return definitions
}

// subjects returns the objects of files that have a definition.
func (c *command) subjects(definitions map[runtimeschema.GroupKind]*schema.Definition, paths []string) (all []subject) {
	for _, f := range c.read(paths) {
		for _, d := range f.documents() {
			if d.err != nil {
				c.fail(fmt.Errorf("%s:%d: %w", f.name, d.content(), d.err))
			}
			for _, o := range d.objects {
				gv, err := runtimeschema.ParseGroupVersion(o.APIVersion)
				definition := definitions[gv.WithKind(o.Kind).GroupKind()]
				if err != nil || definition == nil || !slices.Contains(definition.Versions(), gv.Version) {
					if f.named || definition != nil {
						c.fail(fmt.Errorf("%s:%d: no matches for kind %q in version %q", f.name, d.content(), o.Kind, o.APIVersion))
					}
					continue
				}
				all = append(all, subject{d, o, definition.Version(gv.Version)})
			}
		}
	}
	return all
}
