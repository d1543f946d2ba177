// Command at runs the commands of all Ats of a cluster, each at its time. See package at.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/at"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		klog.FromContext(ctx).Error(err, "The controller stopped")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.Flush()
}

func run(ctx context.Context, args []string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	fs := pflag.NewFlagSet("at", pflag.ContinueOnError)
	fs.StringVar(&rules.ExplicitPath, "kubeconfig", "", "Path to a kubeconfig file. Without it, that of kubectl is used, or the service account of the pod.")
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
	switch err := fs.Parse(args); {
	case err == pflag.ErrHelp:
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected arguments: %q", fs.Args())
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Running the commands of Ats", "server", config.Host)
	return at.Run(ctx, config)
}
