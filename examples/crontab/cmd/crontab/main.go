// Command crontab serves the conversion of CronTabs to the API server of a kubeconfig. See
// package crontab.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/crontab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		klog.FromContext(ctx).Error(err, "The webhook stopped")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.Flush()
}

// address is the address of the program for the API server, as in config/crd.
const address = "127.0.0.1:9443"

func run(ctx context.Context, args []string) error {
	fs := pflag.NewFlagSet("crontab", pflag.ContinueOnError)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	fs.StringVar(&rules.ExplicitPath, "kubeconfig", "", "Path to a kubeconfig file. Without it, that of kubectl.")
	listen := fs.String("listen", address, "The address on which to serve HTTPS.")
	url := fs.String("url", "", "Where the definition says that the API server finds it. Without it, https:// and the address of --listen.")
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected arguments: %q", fs.Args())
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	if *url == "" {
		*url = "https://" + l.Addr().String()
	}
	klog.FromContext(ctx).Info("Serving HTTPS", "address", l.Addr(), "url", *url)
	return crontab.Run(ctx, config, l, *url)
}
