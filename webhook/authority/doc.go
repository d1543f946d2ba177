// Package authority answers one question: with which certificates do the webhooks
// serve, without a certificate manager?
//
// Without a certificate manager, and with any number of replicas: a CA is kept in a
// Secret that they share, and each replica makes its own serving certificates with
// it, which never leave its memory.
//
//	certs, err := authority.New(config, "pizza-system", "pizza-operator-webhook", []string{"pizza-operator.pizza-system.svc"})
//	go certs.Run(ctx)
//	err = webhook.Serve(ctx, listener, mux, certs)
//
// The API server must be told to trust [Authority.CABundle]: package
// webhook/registration does that, which also puts all this into one call.
//
// # Rotation
//
// No replica leads. Each one looks at the Secret, takes the step that is due, and
// writes it if no other replica has been faster (an update of the resourceVersion that it
// has seen):
//
//  1. When the CA has reached its age ([RotateAfter]), a next one is put beside it.
//     The bundle has both.
//  2. When all registrations have the next one ([BundlePropagated]), and have done so for long
//     enough that each API server must know ([PropagationDelay]), it becomes the current one, and
//     every replica that sees this serves with a new certificate.
//  3. The previous one is trusted until it expires, and with it the last certificate
//     that it may have signed; or until 16 others have followed. Its key is gone.
//
// Clocks of replicas and API servers may differ by an hour: certificates are valid from an hour
// before.
//
// The Secret has the current CA in tls.crt and tls.key, the next one in next.crt and next.key,
// those before in previous.crt, and the bundle in ca.crt.
//
// An API server that has not heard of the next CA for all that takes it too: each
// certificate comes with a cross certificate, in which the CA before vouches for the
// one that has signed it (RFC 5280, 3.2).
//
// # What recovers by itself
//
//   - A Secret that is deleted is written again by a replica that remembers it, with a
//     next CA: deleting it is how to ask for a rotation. One that is broken is restored.
//   - A Secret that gets another CA from outside: that becomes the next one.
//   - A state that is older than what replicas remember, such as one from a backup, is
//     replaced by theirs.
//   - A CA that has expired, because nothing ran for months, is replaced at once.
//   - While the Secret cannot be read or written, the certificate is served and renewed with the CA
//     that is known, until that expires. A replica that starts then serves with what it can read.
//   - Where no replica remembers anything, a new CA is made, after some seconds in which
//     one might turn up (a little more than an [Interval], ten at most). All registrations need
//     the new bundle then. The same holds where another CA was put there while no replica
//     could reach the API server.
//
// Other problems are logged: errors of the API server, a right that is missing, and a registration
// without the next CA for many minutes (ten times [PropagationDelay] and [Interval]). A
// rotation waits for it until the current CA expires.
//
// To stop trusting previous CAs before they expire, remove previous.crt from the Secret, and
// their certificates from ca.crt, in one edit: what does not fit together is restored.
//
// # What it needs
//
// [PolicyRules]. Without watch, changes are seen an [Interval] later. The Secret must not be
// immutable, and may be of any type; a new one is a kubernetes.io/tls. Its other keys and metadata
// stay as they are. A user who can read it can pretend to be the webhooks, to the API server.
//
// The package makes no client certificates, and none for other programs.
package authority
