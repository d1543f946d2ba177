// Command library serves the webhooks of books. With the argument manifests, it prints the
// manifests of the webhooks; with migrate, it rewrites all stored books.
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
	"github.com/crdkit/crdkit/webhook/replica"

	library "github.com/crdkit/crdkit/docs/tutorial/library"
)

// books is the name of the CustomResourceDefinition.
const books = "books.library.example.com"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string) error {
	address, where := ":8443", []registration.Option{registration.Service("library-system", "library")}
	if url := os.Getenv("LIBRARY_URL"); url != "" { // runs outside of the cluster
		address = strings.TrimPrefix(url, "https://")
		where = []registration.Option{registration.URL(url), registration.OwnNamespace("library-system")}
	}
	hooks, err := library.Webhooks(where...)
	if err != nil {
		return err
	}
	if command == "manifests" {
		manifests, err := hooks.Manifests(nil)
		fmt.Print(string(manifests))
		return err
	}
	// Without KUBECONFIG, this is the configuration of the Pod.
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	switch command {
	case "":
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		return replica.Run(ctx, config, listener, hooks)
	case "migrate":
		report, err := migrate.Run(ctx, config, books)
		if report != nil {
			fmt.Printf("%d books rewritten in %s, %d failed\n", report.Rewritten, report.Storage, report.Failed)
		}
		return err
	default:
		return fmt.Errorf("unknown command %q", command)
	}
}
