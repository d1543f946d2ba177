// Command pizza-operator is the operator of the pizza restaurant: it serves the
// conversion of pizzas and their admission, and computes what they cost. With the argument
// manifests it prints what a cluster needs to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		klog.FromContext(ctx).Error(err, "The operator stopped")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.Flush()
}

type options struct {
	kubeconfig        string
	bindAddress       net.IP
	securePort        uint16
	certFile, keyFile string
	namespace         string
	leaderElect       bool
	lease             pizza.Lease
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to a kubeconfig file. Without it, the operator uses the service account of its pod.")
	fs.IPVar(&o.bindAddress, "bind-address", net.IPv4zero, "The IP address on which to listen for --secure-port.")
	fs.Uint16Var(&o.securePort, "secure-port", 8443, "The port on which to serve HTTPS. 0 picks a free one.")
	fs.StringVar(&o.certFile, "tls-cert-file", "", "File with the x509 certificate for HTTPS, followed by its chain if there is one. It is read again when it changes. Required.")
	fs.StringVar(&o.keyFile, "tls-private-key-file", "", "File with the private key of --tls-cert-file. Required.")
	fs.StringVar(&o.namespace, "namespace", defaultNamespace(), "The namespace of the operator, in which its lease is.")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Let the controller work only while this replica holds the lease "+pizza.Name+". Every replica serves the webhooks.")
	fs.DurationVar(&o.lease.Duration, "leader-elect-lease-duration", 15*time.Second, "How long the others wait for a leader that does not renew its lease: whole seconds.")
	fs.DurationVar(&o.lease.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to renew its lease before it stops leading. Less than the lease duration.")
	fs.DurationVar(&o.lease.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "The time between two attempts to renew the lease, or to get it.")
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
	fs.AddGoFlag(logging.Lookup("vmodule"))
}

func (o *options) validate() error {
	if o.certFile == "" || o.keyFile == "" {
		return fmt.Errorf("--tls-cert-file and --tls-private-key-file are required")
	}
	return nil
}

// defaultNamespace is that of the pod, if the operator runs in one.
func defaultNamespace() string {
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return pizza.Namespace
	}
	return strings.TrimSpace(string(namespace))
}

// leaderElection returns the option for it, or nothing if it is switched off.
func (o *options) leaderElection() ([]pizza.Option, error) {
	if !o.leaderElect {
		return nil, nil
	}
	host, err := os.Hostname() // in a pod its name
	if err != nil {
		return nil, err
	}
	o.lease.Namespace, o.lease.Name = o.namespace, pizza.Name
	// A container that is started again in the same pod is another replica.
	o.lease.Identity = host + "_" + string(uuid.NewUUID())
	return []pizza.Option{pizza.LeaderElection(o.lease)}, nil
}

// parse parses flags. It is done if they were a question for help.
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

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "manifests" {
		return manifests(os.Stdout, args[1:])
	}
	var o options
	fs := pflag.NewFlagSet("pizza-operator", pflag.ContinueOnError)
	o.addFlags(fs)
	if done, err := parse(fs, args); done || err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	// Without a kubeconfig this falls back to the pod's service account.
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	opts, err := o.leaderElection()
	if err != nil {
		return err
	}
	certs, err := webhook.Files(o.certFile, o.keyFile)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.bindAddress.String(), strconv.Itoa(int(o.securePort))))
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving HTTPS", "address", listener.Addr())
	return pizza.Run(ctx, config, listener, certs, opts...)
}
