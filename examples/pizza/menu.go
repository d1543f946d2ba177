package pizza

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Menu has the pizzas and the toppings of an API server, from watches of its own.
type Menu struct {
	scheme           *runtime.Scheme
	clients          *clients
	pizzas, toppings cache.SharedIndexInformer
	known            *reference.Target
	pizzasOf         *reference.Referrers
}

// NewMenu returns the menu of the API server that the configuration points to. Its informers do not run yet.
func NewMenu(config *rest.Config, s *runtime.Scheme) (*Menu, error) {
	clients, err := newClients(config, s)
	if err != nil {
		return nil, err
	}
	m := &Menu{scheme: s, clients: clients, pizzas: newInformer(clients.Pizzas(""), &v1beta1.Pizza{}), toppings: newInformer(clients.Toppings(), &v1alpha1.Topping{})}
	var referrersErr, targetErr error
	m.pizzasOf, referrersErr = reference.NewReferrers(pizzaResource, m.pizzas, reference.ClusterScoped(toppingResource), ToppingsOf)
	m.known, targetErr = reference.NewTarget(reference.ClusterScoped(toppingResource), m.toppings, func(ctx context.Context, _, name string) error {
		_, err := clients.Toppings().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return m, errors.Join(referrersErr, targetErr)
}

// Run runs the informers until the context is done.
func (m *Menu) Run(ctx context.Context) {
	go m.toppings.RunWithContext(ctx)
	m.pizzas.RunWithContext(ctx)
}

// Ready returns an error until the pizzas and the toppings are known.
func (m *Menu) Ready(request *http.Request) error {
	return errors.Join(m.known.Ready(request), m.pizzasOf.Ready(request))
}

// Defaults returns the handler that adds toppings to pizzas without any.
func Defaults(s *runtime.Scheme, reg *conversion.Registry, opts ...admission.Option) http.Handler {
	return admission.NewHandler(s, append(opts, admission.ConvertWith(reg), admission.Mutate(DefaultToppings))...)
}

// ValidatePizzas requires that the toppings of each pizza exist. It has a function for each version, so that an error has the
// field of the object that the user wrote.
func (m *Menu) ValidatePizzas() []admission.Option {
	return []admission.Option{
		admission.Validate(reference.Exists(m.known, ToppingsOf)),
		admission.Validate(reference.Exists(m.known, ToppingsOfAlpha)),
	}
}

// ValidateToppings forbids the deletion of a topping that is on a pizza.
func (m *Menu) ValidateToppings() admission.Option {
	return admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](m.pizzasOf))
}
