package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
)

func (c *command) convert() *cobra.Command {
	return &cobra.Command{
		Use:   "convert CRD...",
		Short: "Print definitions of apiextensions.k8s.io/v1beta1 in v1",
		Long: `Print definitions in apiextensions.k8s.io/v1, as an API server of Kubernetes 1.16 to 1.21
converts those of v1beta1. The output has the defaults, and neither comments nor a status.
Definitions of v1 are printed too.

v1 requires more than v1beta1, such as a structural schema. Each fault that remains is reported,
with its place in the output, and makes the exit code 1.`,
		Example: `  # Replace an old definition
  crdcheck convert old.yaml >crd.yaml`,
		Args: atLeast(1, "a file with definitions"),
		RunE: func(cmd *cobra.Command, args []string) error {
			definitions, faults := []json.RawMessage{}, []fault{}
			var output []byte
			for _, d := range c.parse(cmd.Context(), args).list {
				definition, err := manifest(d.CustomResourceDefinition())
				if err != nil {
					return err
				}
				text, err := yaml.JSONToYAML(definition)
				if err != nil {
					return err
				}
				if definitions = append(definitions, definition); len(output) > 0 {
					output = append(output, "---\n"...)
				}
				output = append(output, text...)
			}
			if len(definitions) > 0 {
				found, err := schema.Check(output)
				if err != nil {
					return err
				}
				for _, one := range found {
					faults = append(faults, fault{"-", one})
				}
			}
			warnings := countWarnings(faults)
			c.findings = len(faults) - warnings
			if c.output == "json" {
				return c.printJSON(struct {
					Definitions []json.RawMessage `json:"definitions"`
					Faults      []fault           `json:"faults"`
					Errors      []string          `json:"errors"`
				}{definitions, faults, append([]string{}, c.failures...)})
			}
			fmt.Fprintf(c.out, "%s", output)
			for _, f := range faults {
				c.say("%s", f.text())
			}
			c.say("%s printed: %s", count(len(definitions), "definition"), summary(len(faults), warnings))
			return nil
		},
	}
}

// manifest returns the JSON of a definition as it is written for kubectl apply.
func manifest(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	return json.Marshal(object)
}
