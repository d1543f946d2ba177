// Command pizza-operator is the operator of the pizza restaurant: it serves the conversion and
// admission webhooks of pizzas, and computes their costs. With the argument manifests, it prints
// the manifests to run it in a cluster.
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/pizza"
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
	opts, err := o.operator()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.bindAddress.String(), strconv.Itoa(int(o.securePort))))
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving HTTPS", "address", listener.Addr())
	return pizza.Run(ctx, config, listener, o.endpoint, opts...)
}
