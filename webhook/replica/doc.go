// Package replica answers one question: in which order does a replica of an
// operator start and stop?
//
// One call serves the webhooks, with certificates that it makes itself, tells the
// API server to trust them, and runs what else the operator has:
//
//	hooks, err := registration.New("pizza-operator", …)
//	err = replica.Run(ctx, config, listener, hooks,
//		replica.Informer("pizzas", pizzas),
//		replica.Controller(reconcilePizzas),
//	)
//
// # The order
//
// Each step waits for the one before:
//
//  1. HTTPS is served. /healthz says ok.
//  2. There is a certificate, from the CA that all replicas share (webhook/authority).
//  3. The registered webhooks lead here, and have that CA (webhook/registration).
//     From now on the API server can convert objects. Without the manifests, a replica waits
//     for them.
//  4. The informers run. Those of kinds that this operator converts could not sync earlier:
//     the API server would find no webhook.
//  5. They have synced. /readyz says ok; the controllers run.
//
// When the context ends:
//
//  1. The controllers are told to stop, what is registered is left alone, and /readyz
//     fails. Requests are still answered for a while ([webhook.ShutdownDelay]),
//     until no new ones come.
//  2. The listener is closed. Requests in flight are finished, for which the informers
//     still run.
//  3. The informers stop, and what makes the certificates.
//
// # The first replica
//
// A Service sends requests to replicas that are ready; a replica is ready when its
// informers have synced; and an informer of a kind that is converted syncs when a
// replica gets requests. So the first one would wait for itself. Therefore an
// informer that cannot list its objects because no webhook converts them does not keep
// a replica from being ready. One that cannot for another reason does, such as a missing
// permission; a rollout that would break everything stops there. Functions that
// need the informer must say that they cannot decide yet, as package
// admission/reference does.
//
// Once the registration has been right, the replica stays ready: if
// the registration of one webhook breaks, being ready for the others does no harm. The log and a
// metric ([Metrics]) report the difference.
//
// # What it does not do
//
// It elects no leader: a [Controller] does, if it must be alone. It opens no listener,
// handles no signals, and knows no flags.
package replica
