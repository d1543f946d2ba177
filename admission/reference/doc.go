// Package reference answers for admission what a schema cannot: do the objects
// that an object names exist, may it name them, and is an object that is to be
// deleted named by others?
//
// Where an object names others is said by a function of the author, or by [Fields]:
//
//	toppingsOf, err := reference.Fields[*v1beta1.Pizza](reference.Field{Name: "spec.toppings[*].name"})
//
// The answers come from informers, so that they cost no request:
//
//	topping := reference.ClusterScoped(schema.GroupResource{Group: "example.com", Resource: "toppings"})
//	known, err := reference.NewTarget(topping, toppingInformer, reference.Metadata(client, toppings))
//	pizzasOf, err := reference.NewReferrers(pizzas, pizzaInformer, topping, toppingsOf)
//
//	admission.Validate(reference.Exists(known, toppingsOf))
//	admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](pizzasOf))
//
// The informers may be typed, dynamic or metadata-only, of a client-go factory or
// made by hand; interop/controllerruntime has those of a controller-runtime cache.
// The author starts them. [Target.Check] and [Referrers.Check] are checks for
// readiness (see webhook.Checks).
//
// # An informer is behind
//
// Until an informer has synced, nothing is denied: the answer makes the API server
// try again, and then apply the webhook's failurePolicy. After that, a name that
// the informer does not know is read once from the API server before it is denied,
// so that an object which was created a moment ago is found. These reads have a
// timeout, a limit of how many are under way, and a rate; questions for the same
// name share one: see [LiveOption]. What the limits forbid is not decided.
//
// A name that the informer still knows, of an object that was deleted a moment ago,
// passes; [Strict] reads it too.
//
// # What may be named
//
// An object in a namespace may name objects in its own namespace, and of
// cluster-scoped kinds. [CrossNamespace] takes a policy for more. With [Authorize],
// a user can name only what he may get.
//
// In an update, only new references are checked: the ones that the object did not
// have before. Others may have gone meanwhile, or are not the user's business; to
// deny a label, a status or the removal of a finalizer for them would stop
// controllers, and mend nothing. [OnEveryUpdate] checks their existence all the
// same. Register the webhook for CREATE and UPDATE.
//
// # What remains possible
//
// An admission webhook judges before the write, and does not lock. So
//
//   - an object may be deleted between the check of a reference to it and the write
//     of that reference. Its deletion is judged by an informer that has not seen the
//     reference, and passes. The informer is behind by milliseconds, but by much
//     more if its watch is cut off;
//   - a reference may be written while the deletion that [NotReferenced] allowed is
//     under way; for an object with finalizers, which still exists, until it has gone;
//   - the webhook may be passed: by failurePolicy Ignore, while it is not registered,
//     for what is written to etcd directly, or by a namespaceSelector;
//   - what is named may be deleted and created again: a name is not a UID.
//
// A reference that leads to nothing is thus rare, but possible. A controller must
// not take it for a fault of its own: it says so in the status, watches what is
// named, and goes on when it comes ([Referrers.Of] finds whom to look after). Where
// an object must outlive its users in any case, the controller puts a finalizer on
// it, and takes it away when it sees no users in a live list.
//
// The package starts no informer, makes no client, and writes nothing to the
// cluster.
package reference
