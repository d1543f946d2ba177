// Command library serves the webhooks of the library's books. With the argument manifests it
// prints what kubectl shall apply; with migrate it rewrites the books that are stored; with
// remove, or remove --forget-owners, it takes v1alpha1 out of the definition; with
// remove --dry-run it reports whether it could.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/webhook/registration"

	library "github.com/crdkit/crdkit/docs/tutorial/step7"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	service := registration.Service("library-system", "library")
	command := strings.Join(args, " ")
	if command == "manifests" {
		hooks, err := library.Webhooks(service)
		if err != nil {
			return err
		}
		text, err := hooks.Manifests(nil)
		fmt.Print(string(text))
		return err
	}
	// Without KUBECONFIG, it is the configuration of the pod.
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	switch command {
	case "":
		listener, err := net.Listen("tcp", ":8443")
		if err != nil {
			return err
		}
		return library.Run(ctx, config, listener, service)
	case "migrate":
		report, err := library.Migrate(ctx, config)
		if report != nil {
			fmt.Printf("%d books rewritten in %s, %d were in it before, %d failed\n", report.Rewritten, report.Storage, report.Current, report.Failed)
		}
		return err
	case "remove":
		return library.RemoveV1alpha1(ctx, config)
	case "remove --dry-run":
		return library.RemoveV1alpha1(ctx, config, migrate.DryRun())
	case "remove --forget-owners":
		return library.RemoveV1alpha1(ctx, config, migrate.ForgetOwners())
	default:
		return fmt.Errorf("unknown command %q", command)
	}
}
