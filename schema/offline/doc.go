// Package offline is a whole custom resource without a server. A test creates, updates,
// patches, reads, lists and deletes objects in any version, and the operator's own webhooks
// are called for it.
//
//	pizzas, err := offline.New(definition, // a *schema.Definition
//		offline.Convert(mux), // any http.Handler, such as the mux that the operator serves
//		offline.Mutate(mux, mutatingConfiguration.Webhooks...),
//		offline.Validate(mux, validatingConfiguration.Webhooks...))
//	out, err := pizzas.Create(ctx, "v1alpha1", object)
//	out, err = pizzas.Get(ctx, "v1beta1", "default", "margherita")
//
// So a unit test learns in milliseconds what a cluster would say, to the letter: the object
// as it is answered and as it is stored, the warnings, and the error.
//
// # What is real
//
// Package schema decodes, prunes, defaults and validates. The webhooks are called by the
// client that the server has, with ConversionReviews and AdmissionReviews of v1 or v1beta1;
// only that the requests go straight to the handlers. Rules, selectors, match conditions,
// policies, timeouts and review versions are those of the registration. So a test finds
// mistakes in the registration too, and [New] refuses most of what a server would refuse.
// Answers are checked as the server checks them, and the same library applies JSON patches.
//
// The order is the server's:
//
//  1. decode, prune and default;
//  2. mutating webhooks, one after the other, with defaults after each;
//  3. validation by the schema;
//  4. validating webhooks;
//  5. conversion to the storage version.
//
// A read takes defaults from the version in which the object is stored, and converts then.
//
// The tests send the same requests, more than 200, to a real kube-apiserver with the same
// webhooks: with a webhook that converts and without, in namespaces and in none, and after
// the storage version has changed. They compare verdicts, errors, warnings, objects, and what
// the admission webhooks were sent. They also compare what it says of bad registrations.
// Servers of older releases differ as package schema says. Before 1.37, the error about a stored
// object that cannot be converted is the error of the conversion.
//
// UIDs, times and resource versions are counted, so that a test that runs twice sees the
// same: see [UIDs] and [Clock].
//
// # Results
//
// A [schema.Result] from this package differs in two ways from one of package schema. Object
// has all metadata except managedFields. Stored is always there after a create, update or
// patch that stores the object, and after a get, also if a webhook converts; it has no
// resourceVersion.
//
// # Errors
//
// An error of a request is the server's own, an *apierrors.StatusError, with its reason and
// code. The helpers of k8s.io/apimachinery/pkg/api/errors work on it. A request ends after 34
// seconds at the latest, with the server's Timeout.
//
// A few mistakes of the test cannot be sent to a server, or are not simulated. Their errors
// begin with "offline: ":
//
//   - The definition has no such version.
//   - The version is not served. Here the error is also a NotFound, as a client would make it.
//   - The request is for a namespace, and the resource is cluster-scoped. This one is also a
//     NotFound.
//   - The request, or the object of an update, has no name.
//   - The patch is a server-side apply.
//   - The object has changed during each of 500 attempts to write it. The likely cause is a
//     webhook that writes the object that it is asked about. A server tries until the time is
//     over.
//
// # Where it differs
//
//   - The order of webhooks is that of the options. A server orders configurations by name,
//     and calls validating webhooks at the same time.
//   - If a handler panics, the error has the message and the stack. A real webhook would drop
//     the connection. The same if a handler answers 404 and the webhook has no clientConfig:
//     the error says which path was called.
//   - The address of the client that a handler sees is 127.0.0.1:1.
//   - A server also asks the conversion webhook when it tracks the owners of fields, and to
//     fill its caches. It may call mutating webhooks for an update once more, with an older
//     object, and it bounds reads by its --request-timeout.
//   - An object that cannot be converted to a version stops the server's cache of that
//     version. Lists take three seconds until they fail with StorageReadError. After half a
//     minute they fail with TooManyRequests, until the object is converted or deleted
//     (GetList of apiserver/pkg/storage/cacher/delegator.go and cacher.go). Here each list
//     fails at once, with StorageReadError.
//   - A server that has the object in its cache encodes it in the storage version before it
//     updates or deletes it (getStateFromObject, apiserver/pkg/storage/etcd3/store.go): what
//     cannot be converted to that can be neither updated nor deleted, in any version. Here
//     only the new object is converted to it.
//   - The keys in errors are those of a server with the default --etcd-prefix, /registry. The
//     error about a patched object shows the object without managedFields.
//
// # What it does not do
//
// There are no managedFields, and no server-side apply; no watch, and no pages of lists; no
// scale subresource; no deletion of collections, and no preconditions, propagation or
// ignoreStoreReadErrorWithClusterBreakingPotential of a deletion; no quotas, no other
// admission plugins and policies, no audit annotations, no authorization, and no garbage
// collection. Every namespace exists: see [Namespaces] for labels. Match conditions cannot use
// the variable authorizer. Certificates are not checked.
//
// The package imports no informers and no clientsets, and neither does package schema.
package offline
