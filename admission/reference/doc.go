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
// References by labels are those of a [NewSelectorTarget]:
//
//	ovens, err := reference.NewSelectorTarget(oven, ovenInformer, reference.MetadataBySelector(client, ovenResource))
//	admission.Validate(reference.Exists(ovens, func(p *v1beta1.Pizza) []reference.Ref {
//		return []reference.Ref{{Path: field.NewPath("spec", "ovenSelector"), Name: p.Spec.OvenSelector}}
//	}))
//
// # An informer is behind
//
// Until an informer has synced, and when it has stopped, its answers do not count: what
// needs them is not decided. Stop informers when the webhook's last request is
// answered. A name that the informer does not know is read once from the API server
// before it is denied, so that an object which was created a moment ago is found. These
// reads have a timeout, a limit of how many are under way, and a rate, which all users
// of the target share; questions for the same name share one: see [RequestOption].
//
// A name that the informer still knows, of an object that was deleted a moment ago,
// passes; [Strict] reads it too. The reverse is behind as well: who deletes the last
// user of an object, and then the object, may be denied for a moment, and tries again.
//
// # Denied, or not decided
//
// One reference that is at fault for certain denies the object, whatever else is not
// known. Otherwise what is not known leaves it undecided (see package admission). What
// may heal has a Retry-After: an informer that has not synced, a timeout, a connection
// that failed, 429, 5xx, and the rate. With that the API server asks again, until the
// webhook's timeoutSeconds are over (client-go/rest/with_retry.go); the user then reads
// of the timeout, and only the webhook's log has the message. What does not heal in a
// second, such as a missing permission (401, 403), a resource that is not served, or a
// panic, has none, so that its message reaches the user.
//
// Then the webhook's failurePolicy counts. With Fail nothing passes unchecked, and
// while the webhook is down nothing can be written that its rules match: exclude the
// namespaces that it needs itself to start. With Ignore references are advice.
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
// same. Register the webhook for CREATE and UPDATE, and that of [NotReferenced] for
// DELETE.
//
// # Permissions
//
// The webhook's user needs
//
//   - list and watch of what the informers hold: targets and referrers;
//   - get of the targets, for [Metadata], or list, for [MetadataBySelector];
//   - create of subjectaccessreviews in authorization.k8s.io, for [Authorize];
//   - what a policy of [CrossNamespace] reads.
//
// # What it costs
//
// With 100,000 pizzas of three toppings in the cache (`make bench` prints the times of
// your machine), the index of [NewReferrers] takes 344 bytes a pizza, for three
// references, where client-go's takes 360. Of an informer without a store, a target
// keeps the names itself, with 62 bytes each. To judge the deletion of a topping with
// 100,000 users takes 1.3 to 2.1 times as long as of one with a single user; with an
// [Indexer], 8,000 to 9,000 times as long. A miss costs a request to the API server.
//
// # What remains possible
//
// An admission webhook judges before the write, and does not lock. A creation of a
// reference and a deletion of what it names that start together usually both pass: 103 of
// 150 such pairs left a reference to nothing on a local API server (v1.37), with [Strict]
// 88. One after the other, as fast as the answers come, it was 1 of 150 where the deletion
// came second, and 4 where it came first, with Strict none. Two things narrow this:
//
//   - Strict, for a reference that is written after the deletion;
//   - a finalizer on what is named, which a controller takes away when it sees no users in
//     a live list. What remains is the time between that list and the removal.
//
// In detail:
//
//   - an object may be deleted between the check of a reference to it and the write
//     of that reference. Its deletion is judged by an informer that has not seen the
//     reference, and passes. The informer is behind by milliseconds, but by much
//     more if its watch is cut off;
//   - a reference may be written while the deletion that [NotReferenced] allowed is
//     under way; for an object with finalizers, which still exists, until it has gone;
//   - the webhook may be passed: by failurePolicy Ignore, while it is not registered,
//     for what is written to etcd directly, or by a namespaceSelector;
//   - a deleted CustomResourceDefinition takes its objects with it, and no webhook is
//     asked about them (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go);
//   - what is named may be deleted and created again: a name is not a UID.
//
// Two objects in two namespaces that name each other keep both namespaces, when these
// are deleted together: one of the references has to go first. See [NotReferenced].
//
// A reference that leads to nothing is thus possible. A controller must
// not take it for a fault of its own: it says so in the status, watches what is
// named, and goes on when it comes ([Referrers.Of] finds whom to look after).
//
// The package starts no informer, makes no client, and writes nothing to the
// cluster.
package reference
