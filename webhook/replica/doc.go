// Package replica starts and stops the parts of one process of an operator in the right order.
//
// One call of [Run] serves the webhooks with certificates that it issues, adds their CA to the
// registrations, and runs the informers and controllers of the operator:
//
//	hooks, err := registration.New("pizza-operator", …)
//	err = replica.Run(ctx, config, listener, hooks,
//		replica.Informer("pizzas", pizzas),
//		replica.Controller(reconcilePizzas),
//	)
//
// A controller-runtime manager can serve the webhooks itself, so with a manager, you need Run only to
// replace cert-manager. In that case, call Run in a goroutine of its own next to mgr.Start. Do not pass
// it to mgr.Add: the manager would start it only after its caches have synced, and caches of converted
// kinds sync only after this replica converts their objects.
//
// # Startup
//
// Each step waits for the previous step:
//
//  1. The replica serves HTTPS. /healthz returns ok.
//  2. The replica has a certificate from the CA that all replicas share (webhook/authority).
//  3. Somebody has applied the webhook configurations and CustomResourceDefinitions, they point to
//     the Service of the operator, and Run has written the CA into them (webhook/registration).
//  4. The informers run.
//  5. The informers have synced, and the controllers run. /readyz returns ok, for the first replica
//     earlier, as described below.
//
// # Shutdown
//
// When the context is done, these steps follow:
//
//  1. Run cancels the contexts of the controllers, stops writing to the registrations, and makes
//     /readyz fail. It serves requests for another [webhook.ShutdownDelay].
//  2. The listener is closed, and requests in flight, which can still use the informers, are
//     finished.
//  3. The informers and the issuing of certificates stop.
//
// # Readiness of the first replica
//
// A Service routes requests only to ready replicas. If readiness waited for the informers of
// converted kinds, which sync only when a ready replica converts, the first replica would wait for
// itself forever.
//
// Therefore readiness does not wait for an informer whose list fails only because no webhook
// converts its objects yet. Functions that need the informer must leave requests undecided until it
// has synced, as those of package admission/reference do, so that the failure policy decides. An
// informer that cannot list for another reason, such as a missing permission, delays readiness, and so
// stops a rollout that lacks the permission.
//
// After the first successful check of the registration, a later difference no longer affects readiness,
// because a replica can still serve the other webhooks if the registration of one breaks. The log and a
// metric ([Metrics]) report the difference.
//
// # Limitations
//
// The package does not elect a leader; a [Controller] can do so. It opens no listener, handles
// no signals and defines no flags.
package replica
