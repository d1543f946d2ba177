package crdkit_test

import (
	"context"
	"net"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

//lint:file-ignore SA4006 the README leaves out the handling of errors

// These functions hold code of the README: it need not run, but compile.
var _ = []any{lossless, rules, pipeline, server, operate, move}

func lossless(reg *conversion.Registry) error {
	err := conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza"), conversion.ListMapKeys("spec.toppings", "name"))
	return err
}

func rules(
	crustStays func(ctx context.Context, pizza, old *v1beta1.Pizza) (field.ErrorList, error),
	smallScale func(context.Context, *autoscalingv1.Scale) (field.ErrorList, error),
	toppings *reference.Target, toppingsOf func(*v1beta1.Pizza) []reference.Ref,
	pizzasOf *reference.Referrers,
) {
	admission.ValidateUpdate(crustStays, admission.UnlessDeleting())
	admission.Validate(smallScale, admission.Subresource("scale"))
	admission.Validate(reference.Exists(toppings, toppingsOf))                     // all that are missing, in one answer
	admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](pizzasOf)) // "referenced by pizzas: default/margherita, …"
}

func pipeline(ctx context.Context, crdYAML, object []byte) (*schema.Result, error) {
	crd, err := schema.Parse(crdYAML)
	out, err := crd.Version("v1beta1").Create(ctx, object)
	return out, err
}

func server(t *testing.T, hooks *registration.Webhooks) (dynamic.Interface, error) {
	server := offline.Start(t, offline.Webhooks(hooks))
	client, err := dynamic.NewForConfig(server.Config())
	return client, err
}

func operate(
	ctx context.Context, config *rest.Config, listener net.Listener, s *runtime.Scheme, reg *conversion.Registry,
	crdYAML []byte, pizzas cache.SharedInformer, work func(context.Context) error,
) error {
	hooks, err := registration.New("pizza-operator",
		registration.Service("pizza-system", "pizza-operator"),
		registration.Definitions(crdYAML),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("default.pizzas.example.com", "/admit", admission.NewHandler(s, admission.Mutate(defaultToppings))),
	)
	err = replica.Run(ctx, config, listener, hooks, replica.Informer("pizzas", pizzas), replica.Controller(work))
	return err
}

func move(ctx context.Context, config *rest.Config) (*migrate.Report, error) {
	report, err := migrate.Run(ctx, config, "pizzas.restaurant.example.com")
	err = migrate.Remove(ctx, config, "pizzas.restaurant.example.com", "v1alpha1")
	return report, err
}
