// Package registration registers the webhooks of an operator with the API server. You declare the
// handlers, their paths, and the Service or URL at which the API server calls them:
//
//	hooks, err := registration.New("pizza-operator",
//		registration.Service("pizza-system", "pizza-operator"),
//		registration.CRDs(crdYAML),
//		registration.Conversion("/convert", conversion.NewHandler(reg)),
//		registration.Mutating("default.pizzas.example.com", "/admit", admission.NewHandler(s, admission.Mutate(defaultToppings))),
//		registration.Validating("validate.pizzas.example.com", "/validate", admission.NewHandler(s, admission.Validate(knownToppings))),
//		registration.Guard("pizza-operator", "pizza-operator-webhook"),
//	)
//
// The declaration is an [http.Handler] that serves the handlers. [Webhooks.Manifests] returns the
// manifests for kubectl, Helm, kustomize or GitOps; print them in a subcommand of your operator.
// [Webhooks.PolicyRules] returns the RBAC rules, and [Webhooks.Hosts] the host name for the serving
// certificate. In a running replica, [Webhooks.Inject] writes the CA bundle into the applied
// objects, and changes nothing else; with [Guard], its service account cannot. [Webhooks.Ready] reports problems for
// readiness, and [Webhooks.Differences] reports differences from the declaration for a metric.
//
// # Rules
//
// The rules of a webhook are generated from the functions of its handler. Resources and scopes come
// from the CustomResourceDefinitions (CRDs) in [CRDs]. For a kind of Kubernetes itself, the
// resource is the plural of the kind. Set the rules yourself (see [Mutating]) for
//
//   - a handler that is not from package admission,
//   - a function for a kind that is neither built into Kubernetes nor in [CRDs],
//   - a function for every kind, or
//   - a function for a subresource that has a kind of its own, such as scale (kind Scale).
//
// A function that gets only the metadata of objects is registered for all versions of its kind. If
// the handler also has typed functions for the same requests, the rules list only the versions of
// the typed functions, to which the API server converts other versions, so that all functions are
// called. With the match policy Exact, the rules list all versions.
//
// # Namespaces
//
// By default, a webhook is not called for objects in kube-system and in the operator's own
// namespace, so that the cluster and the operator can start while no replica runs. A function of
// [Mutating] can set another namespaceSelector, which may be empty. The API server ignores the selector
// for cluster-scoped resources, except that it compares it with the labels of a Namespace
// (apiserver/pkg/admission/plugin/webhook/predicates/namespace), so a webhook for cluster-scoped
// resources alone has an empty selector by default.
//
// # Installing, updating and uninstalling
//
// To install, apply the manifests and start the replicas, in any order. Until a replica has written
// the CA bundle, requests that need a webhook fail, so that no object skips conversion, defaulting
// or validation. Start replicas first and the gap lasts milliseconds; with an existing CA, as of
// cert-manager, whose bundle you pass to [Webhooks.Manifests], there is no gap.
//
// To update or to roll back, apply the manifests of the next or the earlier release of your
// operator, and then start its replicas. Meanwhile, the replicas of the present release stay ready,
// log the differences, write the CA bundle into all webhooks that point to them, and get requests
// by the applied rules. On paths that they do not serve, they answer 404, and the failure policy
// applies. Therefore:
//
//   - Keep the paths. You may add operations to an existing path, because handlers of package
//     admission allow operations that they do not handle.
//   - Add a webhook with the failure policy Ignore, and change that to Fail in a later release.
//   - Add a conversion first, and change the storage version in a later release, because requests
//     for other versions fail until a replica serves the conversion.
//   - Remove a webhook from the cluster when you remove it from the declaration, but delete a
//     configuration without webhooks only after the rollout, because replicas of the earlier
//     release do not become ready without it.
//
// To uninstall, delete the CRDs and with them their objects, while a replica still converts the
// objects and removes their finalizers, then the webhook configurations, which block requests when
// no replica runs, then the permissions of the operator, the [Guard], and the operator.
//
// # The CA bundle
//
// No field manager owns the CA bundle, because [Webhooks.Inject] removes its own entry from
// managedFields. Manifests without a bundle therefore preserve it, and manifests with one cause no
// conflict. Always include the CA bundle, or never: server-side apply removes a bundle that you
// applied earlier and now omit.
//
// Each write of a CA bundle is reported with a log line, an Event on the object (in the namespace
// default), and a count ([Webhooks.Changes], which package webhook/metrics exports). The reason is
// CABundleInjected or, if another writer had replaced the bundle, CABundleOverwritten, which is an
// error in the log with the field managers that own the caBundle. If the other writer continues,
// each replica writes the bundle about once a second, and logs less often.
//
// A bundle that has all certificates of a replica and others, and that no field manager owns, stays for
// 30 seconds, because replicas of another release may need the others during a rollout. It is replaced
// at once if the replica's own bundle changes.
//
// # Limitations
//
// The package does not issue certificates (see webhook/authority), does not listen (see webhook),
// and never creates or deletes objects. The API server validates fields such as selectors and CEL
// expressions when you apply the manifests.
package registration
