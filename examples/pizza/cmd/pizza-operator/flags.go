package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// options are the values of the flags.
type options struct {
	kubeconfig  string
	bindAddress net.IP
	securePort  uint16
	endpoint    pizza.Endpoint

	leaderElect bool
	lease       pizza.Lease

	certFile, keyFile, caFile           string
	caLifetime, caRotateAfter, caSettle time.Duration
	delay, drainWithin                  time.Duration
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to a kubeconfig file. Without it, the operator uses the service account of its pod.")
	fs.IPVar(&o.bindAddress, "bind-address", net.IPv4zero, "The IP address on which to listen for --secure-port.")
	fs.Uint16Var(&o.securePort, "secure-port", 8443, "The port on which to serve HTTPS. 0 picks a free one.")
	fs.DurationVar(&o.delay, "shutdown-delay", 5*time.Second, "How long to serve on after a signal to stop, until those who send requests have noticed.")
	fs.DurationVar(&o.drainWithin, "drain-timeout", 30*time.Second, "How long requests in flight may take after that.")

	fs.StringVar(&o.endpoint.Namespace, "namespace", defaultNamespace(), "The namespace of the operator, in which its Service, its lease and the Secret with its CA are.")
	addEndpointFlags(fs, &o.endpoint)

	fs.DurationVar(&o.caLifetime, "ca-lifetime", 0, "How long a CA is valid that the operator makes. It is in the Secret "+pizza.Name+"-webhook in --namespace. "+byDefault)
	fs.DurationVar(&o.caRotateAfter, "ca-rotate-after", 0, "The age at which a CA is followed by the next one. "+byDefault)
	fs.DurationVar(&o.caSettle, "ca-settle", 0, "How long to wait, before a next CA is used, until each API server trusts it. "+byDefault)
	fs.StringVar(&o.certFile, "tls-cert-file", "", "File with the x509 certificate for HTTPS, followed by its chain if there is one. It is read again when it changes. Without it, the operator makes its certificates.")
	fs.StringVar(&o.keyFile, "tls-private-key-file", "", "File with the private key of --tls-cert-file.")
	fs.StringVar(&o.caFile, "ca-file", "", "File with the x509 certificates of the CAs that may have signed --tls-cert-file, for the API server to trust.")

	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Let the controller work only while this replica holds the lease "+pizza.Name+". Every replica serves the webhooks.")
	fs.DurationVar(&o.lease.Duration, "leader-elect-lease-duration", 15*time.Second, "How long the others wait for a leader that does not renew its lease: whole seconds.")
	fs.DurationVar(&o.lease.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to renew its lease before it stops leading. Less than the lease duration.")
	fs.DurationVar(&o.lease.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "The time between two attempts to renew the lease, or to get it.")

	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
}

// addEndpointFlags adds the flags that must be the same for the operator and for its manifests.
func addEndpointFlags(fs *pflag.FlagSet, e *pizza.Endpoint) {
	in := pizza.InCluster()
	fs.Int32Var(&e.ServicePort, "webhook-service-port", in.ServicePort, "The port of the Service "+pizza.Name+" in the operator's namespace, by which the API server finds the webhooks.")
	fs.StringVar(&e.URL, "webhook-url", "", "Where the API server finds the webhooks instead, such as https://127.0.0.1:9443: for an operator outside of the cluster.")
	fs.StringSliceVar(&e.ReviewVersions, "review-versions", in.ReviewVersions, "The versions in which the API server may send reviews, the preferred one first.")
	fs.BoolVar(&e.NoFreeToppings, "no-free-toppings", false, "Refuse toppings that cost nothing.")
}

const byDefault = "0 is the default of crdkit's webhook/authority."

// parse parses flags. done is true if they only ask for help.
func parse(fs *pflag.FlagSet, args []string) (done bool, err error) {
	switch err := fs.Parse(args); {
	case err == pflag.ErrHelp:
		return true, nil
	case err != nil:
		return false, err
	case fs.NArg() > 0:
		return false, fmt.Errorf("unexpected arguments: %q", fs.Args())
	}
	return false, nil
}

// validate finds the mistakes that the packages which use the options do not find.
func (o *options) validate() error {
	files := 0
	for _, file := range []string{o.certFile, o.keyFile, o.caFile} {
		if file != "" {
			files++
		}
	}
	if files != 0 && files != 3 {
		return errors.New("--tls-cert-file, --tls-private-key-file and --ca-file belong together: give all three, or none")
	}
	for name, d := range map[string]time.Duration{
		"ca-lifetime": o.caLifetime, "ca-rotate-after": o.caRotateAfter, "ca-settle": o.caSettle,
	} {
		switch {
		case d < 0:
			return fmt.Errorf("--%s=%s must not be negative", name, d)
		case d != 0 && files == 3:
			return fmt.Errorf("--%s is for certificates that the operator makes, and --tls-cert-file for others", name)
		}
	}
	return nil
}

// defaultNamespace returns the namespace of the pod, if the operator runs in one.
func defaultNamespace() string {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return pizza.Namespace
	}
	return strings.TrimSpace(string(namespace))
}

// operator returns the options of the operator.
func (o *options) operator() ([]pizza.Option, error) {
	opts := []pizza.Option{pizza.Replica(replica.Server(webhook.ShutdownDelay(o.delay), webhook.DrainTimeout(o.drainWithin)))}
	if o.leaderElect {
		host, err := os.Hostname() // in a pod, the name of the pod
		if err != nil {
			return nil, err
		}
		o.lease.Namespace, o.lease.Name = o.endpoint.Namespace, pizza.Name
		// A container that restarts in the same pod is another replica.
		o.lease.Identity = host + "_" + string(uuid.NewUUID())
		opts = append(opts, pizza.LeaderElection(o.lease))
	}
	if o.certFile == "" {
		return append(opts, pizza.Replica(replica.Authority(o.authority()...))), nil
	}
	certs, certErr := webhook.Files(o.certFile, o.keyFile)
	bundle, bundleErr := registration.BundleFile(o.caFile)
	return append(opts, pizza.Replica(replica.Certificates(certs, bundle))), errors.Join(certErr, bundleErr)
}

// authority returns the options of the flags that are set.
func (o *options) authority() (opts []authority.Option) {
	add := func(option func(time.Duration) authority.Option, d time.Duration) {
		if d != 0 {
			opts = append(opts, option(d))
		}
	}
	add(authority.CALifetime, o.caLifetime)
	add(authority.RotateAfter, o.caRotateAfter)
	add(authority.PropagationDelay, o.caSettle)
	return opts
}
