package crontab

import (
	"context"
	_ "embed" // for the definition
	"errors"
	"net"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

//go:embed config/crd/stable.example.com_crontabs.yaml
var definition string

// Run serves the conversion of CronTabs on the listener until the context is done, and always
// closes the listener. It issues its certificates, with a CA in the Secret crontab-webhook in the
// namespace default, and writes the CA into the CustomResourceDefinition in the cluster of config.
// The url is the URL of the listener in that definition, such as https://127.0.0.1:9443. See
// package [replica] for the options and the errors.
func Run(ctx context.Context, config *rest.Config, l net.Listener, url string, opts ...replica.Option) error {
	reg, err := NewRegistry()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	hooks, err := registration.New("crontab",
		registration.URL(url),
		registration.CRDs([]byte(definition)),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
	)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return replica.Run(ctx, config, l, hooks, opts...)
}
