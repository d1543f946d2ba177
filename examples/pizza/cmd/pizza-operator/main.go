// Command pizza-operator is the operator of the pizza restaurant: it serves the
// conversion of pizzas and their admission, and computes what they cost.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"
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
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to a kubeconfig file. Without it, the operator uses the service account of its pod.")
	fs.IPVar(&o.bindAddress, "bind-address", net.IPv4zero, "The IP address on which to listen for --secure-port.")
	fs.Uint16Var(&o.securePort, "secure-port", 8443, "The port on which to serve HTTPS. 0 picks a free one.")
	fs.StringVar(&o.certFile, "tls-cert-file", "", "File with the x509 certificate for HTTPS, followed by its chain if there is one. It is read again when it changes. Required.")
	fs.StringVar(&o.keyFile, "tls-private-key-file", "", "File with the private key of --tls-cert-file. Required.")
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

func run(ctx context.Context, args []string) error {
	var o options
	fs := pflag.NewFlagSet("pizza-operator", pflag.ContinueOnError)
	o.addFlags(fs)
	switch err := fs.Parse(args); {
	case err == pflag.ErrHelp:
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected arguments: %q", fs.Args())
	}
	if err := o.validate(); err != nil {
		return err
	}
	// Without a kubeconfig this falls back to the pod's service account.
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
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
	return pizza.Run(ctx, config, listener, certs)
}
