package replica_test

import (
	"context"
	"net"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// The main function of an operator, without signals. The example needs a cluster, and is not run.
func ExampleRun() {
	var (
		ctx    context.Context                 // ends on SIGTERM
		hooks  *registration.Webhooks          // registration.New
		pizzas cache.SharedIndexInformer       // of a kind that the webhooks convert
		work   func(ctx context.Context) error // reconciles pizzas until ctx ends
	)
	config, err := rest.InClusterConfig()
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", ":8443")
	if err != nil {
		panic(err)
	}
	if err := replica.Run(ctx, config, listener, hooks,
		replica.Informer("pizzas", pizzas),
		replica.Controller(work),
	); err != nil {
		panic(err)
	}
}
