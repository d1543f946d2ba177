// Command crdmigrate moves stored objects to a new storage version, and takes old versions
// out of CustomResourceDefinitions. See package crdmigrate.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/crdkit/crdkit/examples/crdmigrate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := crdmigrate.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
