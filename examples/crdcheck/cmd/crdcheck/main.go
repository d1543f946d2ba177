// Command crdcheck says what an API server would make of CustomResourceDefinitions and
// custom objects. See package crdcheck.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/crdkit/crdkit/examples/crdcheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := crdcheck.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
