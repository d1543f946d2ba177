// Package reference validates references between objects in admission webhooks. It checks that
// referenced objects exist, that an object may reference them, and that an object to be
// deleted is not referenced. The object that holds a reference is the referrer; the referenced
// object is the target.
//
// The function that [Fields] returns, or a function that you write, finds the references in an
// object:
//
//	toppingsOf, err := reference.Fields[*v1beta1.Pizza](
//		reference.Field{Name: "spec.toppings[*].name"})
//
// The checks read from informers, and usually make no request:
//
//	topping := reference.ClusterScoped(toppings.GroupResource())
//	known, err := reference.NewTarget(topping, toppingInformer, reference.Metadata(client, toppings))
//	pizzasOf, err := reference.NewReferrers(pizzas, pizzaInformer, topping, toppingsOf)
//
//	admission.Validate(reference.Exists(known, toppingsOf))
//	admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](pizzasOf))
//
// You start the informers, which may be typed, dynamic, metadata-only, or from a
// controller-runtime cache (see interop/controllerruntime). Stop them after the webhook's last
// request. Use [Target.Check] and [Referrers.Check] as readiness checks (see webhook.Checks).
// Register the Exists webhook for CREATE and UPDATE, and the NotReferenced webhook for DELETE.
//
// # Stale informers
//
// Before an informer has synced, or after it has stopped, requests that need it are left
// undecided. A synced informer may lag behind the API server for a moment:
//
//   - If a target is missing from the informer, Exists queries the API server before it denies
//     the request. Therefore Exists finds a target that was just created. [RequestRate] limits
//     these queries.
//   - A reference to a target that was just deleted may be allowed.
//   - Just after the last referrer of a target is deleted, the deletion of the target may still
//     be denied.
//
// # Undecided requests
//
// If a reference is certainly wrong, the request is denied. Otherwise, if a check cannot be
// completed, the request is left undecided (see package admission). The response has a
// Retry-After in these cases:
//
//   - An informer has not synced, or has stopped.
//   - A request to the API server timed out, lost its connection, or failed with 408, 429 or
//     5xx.
//   - The wait for [RequestRate] would exceed the time limit of [Exists].
//
// With a Retry-After, the API server retries until the webhook's timeoutSeconds have passed
// (client-go/rest/with_retry.go). The user then sees a timeout, and only the log of the webhook
// has the cause. A lasting failure, such as a missing permission or a panic, has no
// Retry-After. The user sees its message. In both cases, the failurePolicy applies:
//
//   - With Fail, nothing passes unchecked. While the webhook is down, requests that match its
//     rules fail. Exclude the namespaces that the webhook needs in order to start.
//   - With Ignore, undecided requests pass.
//
// # Permissions
//
// The webhook's service account needs these permissions:
//
//   - list and watch for the resources of the informers
//   - get for the targets, if you use [Metadata]
//   - create for subjectaccessreviews in authorization.k8s.io, if you use [Authorize]
//   - permissions for the objects that the policy of [CrossNamespace] reads
//
// # Limitations
//
// A check happens before the write, without a lock. If a reference is created at the moment
// when its target is deleted, usually both requests pass. On a local API server (v1.37), 103 of
// 150 such pairs left a dangling reference. A finalizer on the target makes dangling references
// rarer. A controller must remove it only after a live list finds no referrers. The check does
// not run in namespaces that a namespaceSelector excludes, while the webhook is not registered,
// or when the objects of a deleted CustomResourceDefinition are deleted
// (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go). A reference has a name
// and no UID. Therefore the checks cannot detect that a target was deleted and created again.
//
// Therefore your controller must expect dangling references. It should report them in the
// status, and reconcile the referrers when a target appears; see [Referrers.Of].
package reference
