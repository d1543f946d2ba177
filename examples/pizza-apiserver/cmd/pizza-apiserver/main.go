// Command pizza-apiserver is the pizza restaurant as an aggregated API server. With the
// argument manifests it prints what a cluster needs to find it.
package main

import (
	"context"
	"flag"
	"fmt"
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
	run := serve
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "manifests" {
		run, args = manifests, args[1:]
	}
	if err := run(ctx, args); err != nil {
		klog.FromContext(ctx).Error(err, "The server stopped")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	klog.Flush()
}

func serve(ctx context.Context, args []string) error {
	options, err := apiserver.NewOptions()
	if err != nil {
		return err
	}
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	if err := parse(apiserver.Name, args, func(fs *pflag.FlagSet) {
		options.AddFlags(fs)
		fs.AddGoFlag(logging.Lookup("v"))
	}); err != nil {
		return err
	}
	return options.Run(ctx)
}

// parse parses flags, and exits if the user asks for help or makes a mistake.
func parse(name string, args []string, add func(*pflag.FlagSet)) error {
	fs := pflag.NewFlagSet(name, pflag.ExitOnError)
	add(fs)
	_ = fs.Parse(args) // exits
	if fs.NArg() > 0 {
		return fmt.Errorf("arguments %q: only flags are accepted", strings.Join(fs.Args(), " "))
	}
	return nil
}

func manifests(_ context.Context, args []string) (err error) {
	var file string
	var port int32
	if err := parse(apiserver.Name+" manifests", args, func(fs *pflag.FlagSet) {
		fs.StringVar(&file, "ca-file", "", "File with the x509 certificates that the kube-apiserver shall trust. The server leaves its own in apiserver.crt, in --cert-dir. Without it, the APIServices are left out.")
		fs.Int32Var(&port, "service-port", 443, "The port of the Service "+apiserver.Name+".")
	}); err != nil {
		return err
	}
	var bundle []byte
	if file != "" {
		if bundle, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	text, err := apiserver.Manifests(bundle, port)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
