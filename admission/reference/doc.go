// Package reference answers one question for admission: do the objects that an
// object names exist, and is an object that is to be deleted named by others?
//
// The answers come from informers, so that they cost no request:
//
//	known := reference.NewTarget(toppings, toppingInformer, getTopping)
//	pizzasOf, err := reference.NewReferrers(pizzas, pizzaInformer, toppingsOf)
//
//	admission.Validate(reference.Exists(known, toppingsOf))
//	admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](toppings, pizzasOf))
//
// where pizzas and toppings are resources, and toppingsOf says which names an
// object holds, and in which fields:
//
//	func toppingsOf(pizza *v1beta1.Pizza) []reference.Ref
//
// The informers come from client-go: those of a generated or dynamic factory, or
// one made with [k8s.io/client-go/tools/cache.NewSharedIndexInformer], as
// examples/pizza does.
//
// An informer may be behind. Until it has synced, the functions here return an
// error that makes the API server try again, and then apply its failure policy;
// they do not deny. After that, a name that the informer does not know is looked
// up by one live read before it is denied: an object that was created a moment
// ago is found.
//
// What remains is a race that no admission webhook can close: the object may be
// deleted between this check and the write that it allows, and a reference may be
// written between NotReferenced and the deletion. A controller must cope with a
// reference to nothing.
//
// The package starts no informer, makes no client, and takes no locks in the
// cluster.
package reference
