// Package registration answers one question: what must the API server be told so that it
// calls the handlers? One declaration has the handlers, their paths, and the endpoint:
//
//	hooks, err := registration.New("pizza-operator",
//		registration.Service("pizza-system", "pizza-operator"),
//		registration.Definitions(crdYAML),
//		registration.Conversion("/convert", conversion.NewHandler(reg)),
//		registration.Mutating("default.pizzas.example.com", "/admit", admission.NewHandler(s, admission.Mutate(defaultToppings))),
//		registration.Validating("validate.pizzas.example.com", "/validate", admission.NewHandler(s, admission.Validate(knownToppings))),
//	)
//
// From it come the [http.Handler] to serve, the manifests for kubectl, Helm, kustomize and GitOps
// ([Webhooks.Manifests]), the RBAC rules ([Webhooks.PolicyRules]), and the names that a serving
// certificate needs ([Webhooks.Hosts]). A running replica writes the CA bundle
// ([Webhooks.Inject]) and nothing else. It reports what does not fit, in readiness
// ([Webhooks.Check]), in the log and as a metric ([Webhooks.Differences]).
//
// # Rules
//
// The rules of a webhook are made from its handler: the kinds, versions, operations and
// subresources of its functions. The names of the resources and their scope are those of
// the definitions; for built-in kinds they are guessed, which is right for these. A handler
// that is not from this library needs rules that the author sets, and so does a function of every
// kind, or of a subresource of another kind, such as scale (see [Mutating]).
//
// A function of metadata is for all versions of its kind. If other functions in the handler
// want the same requests in certain versions, the rules are for these versions: the API
// server converts to one of them, and all functions see the request. (With the match policy
// Exact nothing is converted, and the rules are for all versions.)
//
// [Wrap] puts middleware around all handlers.
//
// # Namespaces
//
// By default, a webhook is not called for objects in kube-system and in the operator's own
// namespace: one that is down cannot keep the cluster, or the operator, from coming up. Custom resources in those two
// namespaces are not defaulted and not validated by webhooks. The API server does not look
// at the selector for cluster-scoped resources, which are never exempted, and matches it
// with the labels of the object itself for a Namespace
// (apiserver/pkg/admission/plugin/webhook/predicates/namespace). A webhook for cluster-scoped
// resources alone has no selector by default.
//
// # Order
//
// The manifests may be applied before the operator has ever run, or after its replicas have
// started, which wait for them. Until a replica has written the CA bundle, requests that need the
// webhooks fail, and nothing is stored that was not converted, defaulted and validated. Where that
// must not be, start the replicas first, which leaves milliseconds, or give the CA bundle to
// [Webhooks.Manifests].
//
// To update, apply the manifests of the next release, and then start its replicas; to roll back, do
// the same with the release before. The replicas of this release write the CA bundle into what leads
// to them, whichever release has declared it. They log what differs from their own declaration and
// stay ready. Until the last of them has gone, they get requests by the new rules. On a path that
// they do not serve they answer 404, and the failure policy applies. So
//
//   - keep the paths from release to release. A handler of package admission lets requests for
//     other operations pass.
//   - add a webhook with the failure policy Ignore, and change that to Fail in a later release.
//   - let the release that adds a conversion keep the storage version. Requests for other
//     versions fail until a replica serves the conversion.
//   - remove a webhook, or a whole configuration, with the manifests too. A replica that starts
//     without a configuration that it declares does not get ready.
//
// To uninstall, delete the webhook configurations first: without a server, they block what
// they are for. Then delete the definitions with all their objects, while a replica still runs,
// which converts these and removes their finalizers.
//
// # The CA bundle
//
// It belongs to no field manager. So it stays when manifests without one are applied, by kubectl,
// Helm or server-side apply, and manifests with one do not conflict. Apply either always or never
// with a bundle: server-side apply takes away what it has applied before.
//
// # What it does not do
//
// The package issues no certificates (see webhook/authority), does not listen (see webhook), and
// never creates or deletes anything in a cluster. It does not check what the API server checks
// when manifests are applied, such as selectors and CEL expressions.
package registration
