// Package replica runs a replica of an operator, and starts and stops its parts in the right
// order.
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
// # Startup
//
// Each step waits for the previous step:
//
//  1. The replica serves HTTPS. /healthz returns ok.
//  2. The replica has a certificate from the CA that all replicas share (webhook/authority).
//  3. The registered webhooks point to the Service of the operator, and have the CA
//     (webhook/registration). Now the API server can convert objects. If the webhook
//     configurations and CustomResourceDefinitions have not been applied yet, the replica waits
//     for them.
//  4. The informers run. Informers of kinds that this operator converts could not sync
//     earlier, because the API server would find no webhook.
//  5. The informers have synced. /readyz returns ok, and the controllers run.
//
// # Shutdown
//
// When the context is done, these steps follow:
//
//  1. The contexts of the controllers are done, the replica no longer writes to the
//     registrations, and /readyz fails. Requests are still served for [webhook.ShutdownDelay],
//     until no new requests arrive.
//  2. The listener is closed. Requests in flight are finished, and can still use the
//     informers.
//  3. The informers and the issuing of certificates stop.
//
// # Readiness of the first replica
//
// A Service routes requests only to ready replicas. By default, a replica is ready after its
// informers have synced. But the informer of a converted kind can sync only if a ready replica
// converts. Therefore the first replica would wait for itself forever.
//
// To prevent this, readiness does not wait for an informer whose list fails only because no
// webhook converts its objects yet. Functions that need the informer must leave requests
// undecided until it has synced, like the functions of package admission/reference. An informer
// that cannot list for another reason, such as a missing permission, does delay readiness. A
// rollout of a broken release then stops.
//
// Once the registration has been right, later differences do not make the replica unready. If
// the registration of one webhook breaks, the replica can still serve the others. The log and
// a metric ([Metrics]) report the difference.
//
// # Limitations
//
// The package does not elect a leader; a [Controller] can do so. It opens no listener, handles
// no signals and defines no flags.
package replica
