// Package replica starts and stops the parts of an operator's replica in the right order.
//
// One call of [Run] serves the webhooks with certificates that it issues, adds their CA to the
// registrations, and runs the informers and controllers of the operator. A controller-runtime
// manager can serve the webhooks itself, so with a manager, you need Run only to replace
// cert-manager. Call it beside mgr.Start, not by mgr.Add, which would wait for caches that wait for
// this replica to convert their objects:
//
//	hooks, err := registration.New("pizza-operator", …)
//	err = replica.Run(ctx, config, listener, hooks,
//		replica.Informer("pizzas", pizzas),
//		replica.Controller(reconcilePizzas),
//	)
//
// # Startup
//
// Each step waits for the previous step:
//
//  1. The replica serves HTTPS. /healthz returns ok.
//  2. The replica has a certificate from the CA that all replicas share (webhook/authority).
//  3. The webhook configurations and CustomResourceDefinitions have been applied, point to the
//     Service of the operator, and have the CA (webhook/registration), so that the API server can
//     convert objects.
//  4. The informers run. Those of converted kinds could not sync earlier.
//  5. The informers have synced. /readyz returns ok, and the controllers run.
//
// # Shutdown
//
// When the context is done, these steps follow:
//
//  1. The contexts of the controllers are done, the replica no longer writes to the registrations,
//     and /readyz fails. Requests are still served for [webhook.ShutdownDelay].
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
// has synced, as those of package admission/reference do. An informer that cannot list for another
// reason, such as a missing permission, delays readiness, so that a broken rollout stops.
//
// After the first successful check of the registration, drift no longer affects readiness, because
// a replica can still serve the other webhooks if the registration of one breaks. The log and a
// metric ([Metrics]) report the difference.
//
// # Limitations
//
// The package does not elect a leader; a [Controller] can do so. It opens no listener, handles
// no signals and defines no flags.
package replica
