// Package offline is a whole custom resource without a server: objects are created, updated,
// read and deleted in any version, and the operator's own webhooks are asked about them.
//
//	pizzas, err := offline.New(definition, // a *schema.Definition
//		offline.Convert(mux), // any http.Handler, such as the mux that the operator serves
//		offline.Mutate(mux, mutatingConfiguration.Webhooks...),
//		offline.Validate(mux, validatingConfiguration.Webhooks...))
//	out, err := pizzas.Create(ctx, "v1alpha1", object)
//	out, err = pizzas.Get(ctx, "v1beta1", "default", "margherita")
//
// So a unit test says in milliseconds what a cluster would say: the object as it is answered
// and as it is stored, the warnings, and the error, to the letter.
//
// # What is real
//
// The schema's part is package schema. The webhooks are called as the server calls them, by
// the client that it has, but that the requests go straight to the handlers: with a
// ConversionReview for each object, and with AdmissionReviews, in v1 or v1beta1. Rules,
// selectors, match conditions, match, failure and reinvocation policies, timeouts and review
// versions are those of the registration, so that a test finds mistakes there too. Answers
// are checked as the server checks them, and JSON patches are applied by the same library.
//
// The order is the server's: decode, prune and default; mutating webhooks, one after the
// other, with defaults after each; validation by the schema; validating webhooks;
// conversion to the storage version. A read takes defaults from the storage version, and is
// converted then.
//
// The tests send the same 125 requests to a real kube-apiserver with the same webhooks, one
// that converts and none, and compare verdicts, errors, warnings, objects, and what the
// admission webhooks were sent.
//
// UIDs, times and resource versions are counted, so that a test that runs twice sees the
// same: see [UIDs] and [Clock].
//
// # What it does not do
//
// There are no managedFields, and no server-side apply; no watch, selectors and pages of
// lists, scale subresource, deletions of collections, preconditions and propagation of a
// deletion; no quotas, other admission plugins and policies, and no garbage collection.
// Every namespace exists, with the label kubernetes.io/metadata.name alone. The variable
// authorizer of match conditions is not there. The addresses, certificates and names of a
// registration are not checked. The real server also asks the conversion webhook when it
// tracks the owners of fields, and fills its caches; and it may call mutating webhooks for
// an update once more, with an older object.
//
// The package imports no informers and no clientsets, as package schema does not.
package offline
