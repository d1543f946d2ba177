// Package registration answers one question: what must the API server be told so that it
// calls the handlers, and how does it stay right?
//
// One declaration has the handlers, their paths, and where the API server finds them:
//
//	hooks, err := registration.New("pizza-operator",
//		registration.Service("pizza-system", "pizza-operator"),
//		registration.Definitions(crdYAML),
//		registration.Conversion("/convert", conversion.NewHandler(reg)),
//		registration.Mutating("default.pizzas.example.com", "/admit", admission.NewHandler(s, admission.Mutate(defaultToppings))),
//		registration.Validating("validate.pizzas.example.com", "/validate", admission.NewHandler(s, admission.Validate(knownToppings))),
//	)
//
// From it come the [http.Handler] to serve, the manifests for Helm, kustomize and GitOps
// ([Webhooks.Manifests]), the RBAC rules ([Webhooks.PolicyRules]), the names that a serving
// certificate needs ([Webhooks.Hosts]), and a reconciler that keeps it all right in a
// cluster ([Webhooks.Reconcile]).
//
// # Rules
//
// The rules of a webhook are made from its handler: the kinds, versions, operations and
// subresources of its functions. The names of the resources and their scope are those of
// the definitions; for built-in kinds they are guessed, which is right for these. Nobody
// knows what a handler does that is not from this library, and for which kinds a function
// of every kind is meant: then say it with [Rules].
//
// A handler behind middleware is found if the middleware has a method
// Unwrap() http.Handler. [Wrap] puts middleware around all handlers.
//
// # Namespaces
//
// Unless [NamespaceSelector] says otherwise, a webhook is not called for objects in
// kube-system and in the operator's own namespace: so a webhook that is down cannot keep
// the cluster, or the operator, from coming up again. Custom resources in those two
// namespaces are not defaulted and not validated by webhooks. The API server does not look
// at the selector for cluster-scoped resources, which are never exempted, and matches it
// with the labels of the object itself for a Namespace
// (apiserver/pkg/admission/plugin/webhook/predicates/namespace). All namespaces have the
// label kubernetes.io/metadata.name, which nobody can change. A webhook for cluster-scoped
// resources alone has no selector by default.
//
// # Before the CA is known
//
// The manifests may be applied before the operator has ever run, without a CA bundle. Until
// the operator has written it, requests that need the webhooks fail, and nothing is stored
// that was not converted, defaulted and validated. That is on purpose: a definition with
// strategy None would in the meantime take objects of all versions and change no more of
// them than apiVersion.
//
// # Several replicas, and rolling updates
//
// Every replica may run [Webhooks.Reconcile]. What one has applied, another of the same
// declaration finds right, and writes nothing. In a rolling update the declarations may
// differ. Then the replica that has started last wins: it marks the objects with an
// annotation ([DeclaredAnnotation]), and those that have started before leave its rules
// alone, but repair the CA bundle on. Requests reach replicas of both releases until the old
// ones have gone: on a path that only the new ones serve, the old ones answer 404, and the
// failure policy applies. A rollback starts new replicas, so it works alike. A
// replica of the old declaration whose container restarts in the midst of a rolling update
// is the last that has started, too: its rules then stay until another replica starts.
//
// # Ready or not
//
// [Webhooks.Check] is for /readyz: it says what keeps the registration from being right. A
// replica that cannot be called because it is not ready can still become ready: nothing that
// Reconcile does needs a webhook, or the conversion of an object. An API server that is away
// makes nobody unready.
//
// # What it does not do
//
// The package issues no certificates (see webhook/authority), does not listen (see webhook),
// and never creates or deletes a definition in a cluster.
package registration
