package pizza

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// clients are the clients of the restaurant's kinds.
type clients struct {
	pizzas, toppings *rest.RESTClient
	codec            runtime.ParameterCodec
}

// newClients returns clients for the API server of the configuration.
func newClients(config *rest.Config, s *runtime.Scheme) (*clients, error) {
	client := func(gv schema.GroupVersion) (*rest.RESTClient, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion = &gv
		c.APIPath = "/apis"
		c.ContentType = runtime.ContentTypeJSON
		c.UserAgent = "pizza-operator" // also the name of the field manager
		c.QPS = -1                     // the API server's own flow control is fairer than a limit here
		c.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
		return rest.RESTClientFor(c)
	}
	pizzas, err := client(v1beta1.GroupVersion)
	if err != nil {
		return nil, err
	}
	toppings, err := client(v1alpha1.GroupVersion)
	if err != nil {
		return nil, err
	}
	return &clients{pizzas: pizzas, toppings: toppings, codec: runtime.NewParameterCodec(s)}, nil
}

// Pizzas returns the client of the pizzas of a namespace, or of all namespaces for "".
func (c *clients) Pizzas(namespace string) *gentype.ClientWithList[*v1beta1.Pizza, *v1beta1.PizzaList] {
	return gentype.NewClientWithList("pizzas", c.pizzas, c.codec, namespace,
		func() *v1beta1.Pizza { return &v1beta1.Pizza{} },
		func() *v1beta1.PizzaList { return &v1beta1.PizzaList{} })
}

// Toppings returns the client of the toppings.
func (c *clients) Toppings() *gentype.ClientWithList[*v1alpha1.Topping, *v1alpha1.ToppingList] {
	return gentype.NewClientWithList("toppings", c.toppings, c.codec, "",
		func() *v1alpha1.Topping { return &v1alpha1.Topping{} },
		func() *v1alpha1.ToppingList { return &v1alpha1.ToppingList{} })
}

// lister is the part of a client that an informer needs.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// newInformer returns an informer of all objects that the client lists.
func newInformer[L runtime.Object](client lister[L], example runtime.Object) cache.SharedIndexInformer {
	return reference.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: client.Watch,
	}, example, 10*time.Minute, cache.Indexers{})
}
