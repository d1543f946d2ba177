package main

import (
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/crdkit/crdkit/examples/pizza"
)

// manifests prints all manifests of the operator, for kubectl apply.
func manifests(out io.Writer, args []string) error {
	var image, caFile string
	endpoint := pizza.Endpoint{Namespace: pizza.Namespace}
	fs := pflag.NewFlagSet("pizza-operator manifests", pflag.ContinueOnError)
	addEndpointFlags(fs, &endpoint)
	fs.StringVar(&image, "image", "", "The image of the operator. Without it, the manifests have a placeholder.")
	fs.StringVar(&caFile, "ca-file", "", "File with the x509 certificates of the CAs that may have signed the operator's. Without it, the operator writes them, when it runs.")
	fs.StringSliceVar(&endpoint.APIServers, "api-server-cidrs", nil, "The CIDRs from which the API servers connect. With them, the manifests have a NetworkPolicy, which admits only the API servers and the namespace monitoring.")
	if done, err := parse(fs, args); done || err != nil {
		return err
	}
	var caBundle []byte
	if caFile != "" {
		var err error
		if caBundle, err = os.ReadFile(caFile); err != nil {
			return err
		}
	}
	all, err := pizza.Manifests(image, endpoint, caBundle)
	if err != nil {
		return err
	}
	_, err = out.Write(all)
	return err
}
