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
// A function of metadata is for all versions of its kind. If other functions in the handler
// want the same requests in certain versions, the rules are for these versions: the API
// server converts to one of them, and all functions see the request. (With [MatchPolicy]
// Exact nothing is converted, and the rules are for all versions.)
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
// differ. Then the replica that has started last wins, as soon as it is ready ([ClaimWhen]):
// it marks the objects with an annotation ([DeclaredAnnotation]), and the others leave its
// rules alone, but repair the CA bundle on. A rollout whose replicas never get ready changes
// no rules, and there is nothing to roll back. A rollback of one that got ready starts new
// replicas, which win in their turn.
//
// The last to start is not always the newest: a replica of the old release may restart in
// the midst of a rollout, and old replicas that never stopped do not start again in a
// rollback. So a replica that has found the rules of another declaration in force for five
// minutes, and is ready, takes them over: in the end all replicas have one declaration, and
// the others are gone. Two declarations of one name that live side by side for longer change
// places every five minutes. They must not, for instance as a canary: the API server knows
// one set of rules, and sends each request to any replica.
//
// The clocks of the replicas may differ by up to an hour. A claim that is further ahead
// orders nothing, and is replaced at once.
//
// During a rollout, requests reach replicas of both releases, whoever has won. On a path that
// only the new ones serve, the old ones answer 404, and the failure policy applies: with
// Fail, some requests fail until the old replicas have gone. So keep the paths from release to
// release, let the handlers of the old rules take the requests of the new ones, and add a
// webhook with Ignore, which a later release changes to Fail.
//
// # Next to kubectl, Helm and GitOps
//
// What is declared belongs to the field manager with the name of the declaration. The
// manifests of the next release are others, so kubectl apply --server-side finds a conflict
// with the operator, which holds the values of the last: apply with --force-conflicts, or
// apply the definitions alone, and leave the webhook configurations to the operator. A plain
// kubectl apply does not ask. Either way, the replicas whose rules hold put them back at
// once, until those of the next release are ready.
//
// # Uninstalling
//
// As long as the operator runs, it creates webhook configurations again that somebody
// deletes: they protect the data. When it does not run, they block what they are for, with
// failure policy Fail. So the order is:
//
//  1. Stop the operator: scale it to zero or delete the Deployment, and wait until the last
//     replica has gone.
//  2. Delete the webhook configurations: kubectl delete
//     mutatingwebhookconfigurations,validatingwebhookconfigurations NAME.
//  3. Delete the definitions, which deletes all their objects. Or keep them, with
//     spec.conversion {strategy: None}, which changes nothing but apiVersion: so only after
//     all objects have been stored in one version (a storage migration), before step 1,
//     and with no other version served.
//  4. Delete the Secret with the CA.
//
// Objects that are stored in another version than the storage version cannot be read without
// the operator, and objects with its finalizers are not let go. The deletion of their
// definition, or of their namespace, waits for ever then: delete such objects before step 1.
//
// kubectl delete -f and helm uninstall do not wait until the replicas have gone, whatever
// their order, and a replica that still runs creates the configurations again. So do step 1
// by hand before, or step 2 once more afterwards (with Helm in a post-delete hook). What a
// chart has in crds/, Helm does not delete.
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
