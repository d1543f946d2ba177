package apiserver

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

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// pizzaClient and toppingClient are clients of the restaurant, in the versions that its
// admission works with.
type (
	pizzaClient   = gentype.ClientWithList[*v1beta1.Pizza, *v1beta1.PizzaList]
	toppingClient = gentype.ClientWithList[*v1alpha1.Topping, *v1alpha1.ToppingList]
)

// newClients returns clients for the server of the configuration.
func newClients(config *rest.Config, s *runtime.Scheme) (*pizzaClient, *toppingClient, error) {
	client := func(gv schema.GroupVersion) (*rest.RESTClient, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath, c.ContentType = &gv, "/apis", runtime.ContentTypeJSON
		c.AcceptContentTypes = runtime.ContentTypeJSON
		c.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
		return rest.RESTClientFor(c)
	}
	pizzas, err := client(v1beta1.GroupVersion)
	if err != nil {
		return nil, nil, err
	}
	toppings, err := client(v1alpha1.GroupVersion)
	if err != nil {
		return nil, nil, err
	}
	parameters := runtime.NewParameterCodec(s)
	return gentype.NewClientWithList("pizzas", pizzas, parameters, metav1.NamespaceAll,
			func() *v1beta1.Pizza { return &v1beta1.Pizza{} },
			func() *v1beta1.PizzaList { return &v1beta1.PizzaList{} }),
		gentype.NewClientWithList("toppings", toppings, parameters, "",
			func() *v1alpha1.Topping { return &v1alpha1.Topping{} },
			func() *v1alpha1.ToppingList { return &v1alpha1.ToppingList{} }), nil
}

// lister is the part of a client that an informer needs.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// newInformer returns an informer of all objects that the client lists.
func newInformer[L runtime.Object](client lister[L], example runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: client.Watch,
	}, example, 10*time.Minute, cache.Indexers{})
}
