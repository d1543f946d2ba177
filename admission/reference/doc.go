// Package reference answers for admission what a schema cannot: do the objects
// that an object names exist, may it name them, and is an object that is to be
// deleted named by others?
//
// A function of the author, or [Fields], finds the names in an object:
//
//	toppingsOf, err := reference.Fields[*v1beta1.Pizza](
//		reference.Field{Name: "spec.toppings[*].name"})
//
// The answers come from informers, so that they cost no request:
//
//	topping := reference.ClusterScoped(toppings.GroupResource())
//	known, err := reference.NewTarget(topping, toppingInformer, reference.Metadata(client, toppings))
//	pizzasOf, err := reference.NewReferrers(pizzas, pizzaInformer, topping, toppingsOf)
//
//	admission.Validate(reference.Exists(known, toppingsOf))
//	admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](pizzasOf))
//
// The author starts the informers, which may be typed, dynamic or metadata-only;
// interop/controllerruntime has those of a controller-runtime cache. [Target.Check] and
// [Referrers.Check] are checks for readiness (see webhook.Checks). Register the webhook of
// [Exists] for CREATE and UPDATE, and that of [NotReferenced] for DELETE.
//
// # An informer is behind
//
// Until an informer has synced, and when it has stopped, what needs it is not decided.
// Stop informers when the webhook's last request is answered. A name that the informer
// does not know is read once from the API server before it is denied, so that an object
// which was created a moment ago is found; [RequestRate] limits these reads. A name of an
// object that was deleted a moment ago passes. After the last user of an object was
// deleted, the deletion of the object may be denied for a moment.
//
// # Denied, or not decided
//
// One reference that is certainly wrong denies the object, whatever else is not
// known. Otherwise what is not known leaves it undecided (see package admission). What
// may go away has a Retry-After: an informer that has not synced, a timeout, a connection
// that failed, 429, 5xx, and the rate. With that the API server asks again, until the
// webhook's timeoutSeconds are over (client-go/rest/with_retry.go); the user then reads
// of the timeout, and only the webhook's log has the message. A lasting failure, such as a
// missing permission or a panic, has none, so that its message reaches the user.
//
// Then the webhook's failurePolicy counts. With Fail, nothing passes unchecked, and
// while the webhook is down nothing can be written that its rules match: exclude the
// namespaces that it needs itself to start. With Ignore, references are advice.
//
// # Permissions
//
// The webhook's user needs list and watch of what the informers hold; get of the targets,
// for [Metadata]; create of subjectaccessreviews in authorization.k8s.io, for [Authorize];
// and what a policy of [CrossNamespace] reads.
//
// # What it costs
//
// With 100,000 pizzas of three toppings in the cache (`make bench` prints the times of
// your machine), the index of [NewReferrers] takes 340 bytes a pizza, for three
// references; client-go's takes 360. A target takes 62 bytes for each name. The deletion of
// a topping is judged in microseconds, also with 100,000 users.
//
// # What remains possible
//
// An admission webhook judges before the write, and does not lock. A creation of a
// reference and a deletion of what it names that start together usually both pass: 103 of
// 150 such pairs left a dangling reference on a local API server (v1.37). A finalizer on what is named narrows this: a controller removes it when it sees no
// users in a live list. The check can also be bypassed: by failurePolicy Ignore, by a
// namespaceSelector, while the webhook is not registered, or by a deleted
// CustomResourceDefinition, which takes its objects with it
// (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go). And a name is not a
// UID: what is named may be deleted and created again.
//
// A dangling reference is thus possible. A controller reports it in the status, watches
// what is named, and continues when it comes ([Referrers.Of] finds its users).
//
// The package starts no informer, makes no client, and writes nothing to the
// cluster.
package reference
