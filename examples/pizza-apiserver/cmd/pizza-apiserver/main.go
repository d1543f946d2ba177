// Command pizza-apiserver is the pizza restaurant as an aggregated API server. With the
// argument manifests it prints what a cluster needs to find it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	apiserver "github.com/crdkit/crdkit/examples/pizza-apiserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		klog.FromContext(ctx).Error(err, "The server stopped")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.Flush()
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) > 0 && args[0] == "manifests" {
		return manifests(out, args[1:])
	}
	options, err := apiserver.NewOptions()
	if err != nil {
		return err
	}
	fs := pflag.NewFlagSet(apiserver.Name, pflag.ContinueOnError)
	options.AddFlags(fs)
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
	fs.AddGoFlag(logging.Lookup("vmodule"))
	if done, err := parse(fs, args); done || err != nil {
		return err
	}
	if err := options.Validate(); err != nil {
		return err
	}
	return options.Run(ctx)
}

// parse reports whether the user has asked for help, and got it.
func parse(fs *pflag.FlagSet, args []string) (done bool, err error) {
	err = fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return true, nil
	case err == nil && fs.NArg() > 0:
		err = fmt.Errorf("arguments %q: only flags are accepted", strings.Join(fs.Args(), " "))
	}
	return false, err
}

func manifests(out io.Writer, args []string) error {
	fs := pflag.NewFlagSet(apiserver.Name+" manifests", pflag.ContinueOnError)
	ca := fs.String("ca-file", "", "File with the x509 certificates that the kube-apiserver shall trust. The server leaves its own in apiserver.crt, in --cert-dir. Without it, the APIServices are left out.")
	port := fs.Int32("service-port", 443, "The port of the Service "+apiserver.Name+".")
	if done, err := parse(fs, args); done || err != nil {
		return err
	}
	var bundle []byte
	if *ca != "" {
		var err error
		if bundle, err = os.ReadFile(*ca); err != nil {
			return err
		}
	}
	text, err := apiserver.Manifests(bundle, *port)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
