package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/examples/pizza"
)

// manifests prints all that a cluster needs for the operator, for kubectl apply.
func manifests(out io.Writer, args []string) error {
	var image, caFile string
	fs := pflag.NewFlagSet("pizza-operator manifests", pflag.ContinueOnError)
	fs.StringVar(&image, "image", "", "The image of the operator. Without it, the manifests have a placeholder.")
	fs.StringVar(&caFile, "ca-file", "", "File with the x509 certificates of the CAs that may have signed the operator's. Without it, the API server trusts those of its host.")
	if done, err := parse(fs, args); done || err != nil {
		return err
	}
	deployment, err := pizza.Deployment(image)
	if err != nil {
		return err
	}
	definitions, webhooks, err := registration(caFile)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{deployment, definitions, webhooks} {
		if _, err := out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// registration returns what the API server must be told: definitions and webhooks, which
// it finds by the operator's Service.
func registration(caFile string) (definitions, webhooks []byte, err error) {
	endpoint := pizza.Endpoint{Service: pizza.ServiceName(), ReviewVersion: "v1"}
	if caFile != "" {
		if endpoint.CABundle, err = os.ReadFile(caFile); err != nil {
			return nil, nil, err
		}
		if _, err := cert.ParseCertsPEM(endpoint.CABundle); err != nil {
			return nil, nil, fmt.Errorf("--ca-file: %s: %w", caFile, err)
		}
	}
	return endpoint.Manifests()
}
