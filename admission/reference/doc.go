// Package reference validates references between objects in admission webhooks. It checks that the
// referenced object (the target) exists, that the object with the reference (the referrer) may
// reference it, and that an object to be deleted has no referrers.
//
// You write a function that returns the references in an object:
//
//	toppingsOf := func(p *v1beta1.Pizza) (refs []reference.Ref) {
//		for i, t := range p.Spec.Toppings {
//			refs = append(refs, reference.Ref{Path: field.NewPath("spec", "toppings").Index(i).Child("name"), Name: t.Name})
//		}
//		return refs
//	}
//
// The checks read from informers, and usually make no request. [NewInformer] creates an informer
// that notices when its watch is broken:
//
//	topping := reference.ClusterScoped(toppings.GroupResource())
//	toppingInformer := reference.NewInformer(listWatch, &v1alpha1.Topping{}, 0, cache.Indexers{})
//	known, err := reference.NewTarget(topping, toppingInformer, reference.Metadata(client, toppings))
//	pizzasOf, err := reference.NewReferrers(pizzas, pizzaInformer, topping, toppingsOf)
//
//	admission.Validate(reference.Exists(known, toppingsOf))
//	admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](pizzasOf))
//
// You start the informers, which may be typed, dynamic, metadata-only, or from a controller-runtime
// cache (see interop/controllerruntime), and stop them after the webhook's last request. Use
// [Target.Ready] and [Referrers.Ready] as readiness checks (see webhook.Checks). Register the
// Exists webhook for CREATE and UPDATE, and the NotReferenced webhook for DELETE.
//
// # Stale informers
//
// A synced informer lags behind the API server, usually by a few milliseconds:
//
//   - Exists finds a target that was just created, because it queries the API server before it
//     denies a request. A [Target] limits these queries to 20 per second, with a burst of 100.
//   - A reference to a target that was just deleted may be allowed.
//   - The deletion of a target may be allowed just after its first referrer is created, and
//     denied just after its last referrer is deleted.
//
// If the watch of an informer is broken, for example because the API server restarts, the informer
// keeps its objects, and client-go reports no error. [NewInformer] observes the watch. In these
// cases, Exists reads all targets from the API server, NotReferenced leaves requests undecided, and
// the Ready methods return an error:
//
//   - The informer has not synced, or has stopped.
//   - The informer has no watch. The error has the cause, such as "connection refused".
//   - The informer has had a watch for less than a second, after more than a second without one, so
//     events that it missed may still arrive.
//
// The checks recover without a restart, one to three seconds after the API server accepts
// connections again, or within a minute if it answers with an error such as 429 or 500, because
// client-go waits that long between two attempts. The checks answer from outdated objects while a
// connection hangs without an error, until the health check of HTTP/2 in client-go notices it after
// 45 seconds (HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS); with HTTP/1.1, only
// TCP notices it.
//
// With the Ready methods as readiness checks, no replica is ready when the API server is down for
// longer than a readiness probe tolerates. If the same replicas convert objects, use them only if
// you accept this.
//
// # Undecided requests
//
// A request with a reference that is certainly wrong is denied. Otherwise, a check that cannot be
// completed leaves the request undecided (see package admission). The response has a Retry-After in
// these cases:
//
//   - The informer that NotReferenced needs has stopped, or became unusable in the last three
//     seconds.
//   - A request to the API server timed out, lost its connection, or failed with 408, 429 or
//     5xx.
//   - A [Target] is asked for more live reads than it makes within the time limit of [Exists].
//
// With a Retry-After, the API server retries until the webhook's timeoutSeconds have passed
// (client-go/rest/with_retry.go), so the user sees a timeout, and only the log of the webhook has
// the cause. A lasting failure, such as a missing permission, a panic, or an informer that has been
// unusable for more than three seconds, has no Retry-After, so the user sees its message. In both
// cases, the failurePolicy applies:
//
//   - With Fail, nothing passes unchecked, but requests that match the rules of the webhook fail
//     while it is down. Exclude the namespaces that the webhook needs in order to start.
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
// A check happens before the write, without a lock. If a reference is created at the moment when
// its target is deleted, usually both requests pass: on a local API server (v1.37), 103 of 150 such
// pairs left a dangling reference. A finalizer on the target, which a controller removes only after
// a live list finds no referrers, makes dangling references rarer. The check does not run in
// namespaces that a namespaceSelector excludes, while the webhook is not registered, or when the
// objects of a deleted CustomResourceDefinition are deleted
// (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go). The checks cannot detect
// that a target was deleted and created again, because a reference has a name and no UID.
//
// Your controller must therefore expect dangling references, report them in the status, and
// reconcile the referrers when a target appears; see [Referrers.Of].
package reference
