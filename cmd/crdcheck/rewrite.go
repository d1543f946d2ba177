package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (c *command) prune() *cobra.Command {
	return c.rewrite(&cobra.Command{
		Use:   "prune --crd FILE OBJECT...",
		Short: "Print objects without the fields that the API server would prune",
		Long: `Print objects without the fields that the schema does not have, and say which those are.
Nothing else is done that the API server does before it stores an object: there are no
defaults, and nulls and the status stay. The exit code is 1 if anything is pruned.`,
	}, func(s subject, object map[string]any) (pruned []string) { return s.version.Prune(object) })
}

func (c *command) setDefaults() *cobra.Command {
	return c.rewrite(&cobra.Command{
		Use:   "default --crd FILE OBJECT...",
		Short: "Print objects with the defaults that the API server would set",
		Long: `Print objects with the defaults of the schema, and without the nulls that defaulting
removes. Nothing is pruned.`,
	}, func(s subject, object map[string]any) (pruned []string) {
		s.version.Default(object)
		return nil
	})
}

// rewrite makes a command that prints what one step of the API server makes of objects.
func (c *command) rewrite(cmd *cobra.Command, step func(s subject, object map[string]any) (pruned []string)) *cobra.Command {
	var crds []string
	cmd.Args = atLeast(1, "a file with objects")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.check(cmd.Context(), cmd.Name(), false, crds, args, func(s subject, a *answer) error {
			var u unstructured.Unstructured
			if err := u.UnmarshalJSON(s.asJSON); err != nil {
				return err
			}
			a.Pruned = step(s, u.Object)
			var err error
			a.Result, err = json.Marshal(u.Object)
			return err
		})
	}
	crdFlag(cmd, &crds)
	return cmd
}
