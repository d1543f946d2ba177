// Package authority issues the serving certificates of webhooks without a certificate manager.
//
// Any number of replicas share a CA in a Secret. With it, each replica signs its own serving
// certificates, whose keys it keeps only in memory.
//
//	certs, err := authority.New(config, "pizza-system", "pizza-operator-webhook", []string{"pizza-operator.pizza-system.svc"})
//	go certs.Run(ctx)
//	err = webhook.Serve(ctx, listener, mux, certs)
//
// The API server trusts the certificates when the registrations of the webhooks contain
// [Authority.CABundle], which package webhook/registration writes. Package webhook/replica does all
// of this in one call.
//
// # Rotation
//
// There is no leader. Each replica reads the Secret, computes the next step, and writes it
// unless another replica was faster (an update with the resourceVersion that it read):
//
//  1. When the CA has reached its age ([RotateAfter]), a next CA is added, also to the bundle.
//  2. Each replica waits until all registrations have the next CA ([BundlePropagated]), and then
//     for [PropagationDelay], so that each API server has seen them. Then the next CA becomes the
//     current CA, and replicas that read this serve with a new certificate.
//  3. The previous CA stays in the bundle, without its key, until it expires, or until 16 other CAs
//     have followed. No certificate outlives its CA.
//
// The clocks of replicas and API servers may differ by an hour, because CAs and serving
// certificates are valid from an hour before they are created. A replica whose clock differs by more
// writes nothing, and logs an error, because its CAs would be of no use to others. An API server that does not know the
// next CA yet also accepts its certificates, because they come with a cross certificate, by which
// the previous CA signs the next CA (RFC 5280, section 3.2).
//
// The Secret has the current CA in tls.crt and tls.key, the next CA in next.crt and next.key,
// previous CAs in previous.crt, and the bundle in ca.crt.
//
// # Recovery
//
// The replicas recover from these problems:
//
//   - The Secret is deleted. A replica that remembers its content writes it again, with a next CA,
//     so you can delete the Secret to request a rotation.
//   - The Secret is broken. A replica that remembers its content restores it.
//   - Another program writes another CA. This CA becomes the next CA, and is reported. If it cannot
//     sign certificates for the hosts, for example because of name constraints, the Secret is restored.
//   - The Secret gets an older state, for example from a backup. The replicas restore their
//     state.
//   - The CA has expired, for example because no replica ran for months. It is replaced at
//     once.
//   - The Secret cannot be read or written. The replicas renew their certificates by the CA that
//     they know, until that CA expires. A replica that starts meanwhile serves with what it can
//     read.
//   - The Secret is missing or broken, and no replica remembers its content. After a wait of
//     six seconds, a new CA is created, whose bundle all registrations then need. The same applies if another CA was written while no replica could
//     reach the API server.
//
// # Log, Events and metrics
//
// A replica reports each change that it makes to the Secret with the same reason in a log line, in
// an Event on the Secret, and in a counter ([Authority.Changes], which package webhook/metrics
// exports):
//
//   - CACreated: there was no CA. The log line is an error if there was one earlier, because
//     requests fail until all registrations have the new CA.
//   - CARotationStarted, CARotated, CARemoved: the three steps of a rotation.
//   - SecretRecreated: the Secret had been deleted.
//   - SecretRepaired: the Secret was broken, or had an earlier state. The log line is an error.
//   - UnknownCA: the Secret has a new CA that was not signed by a CA that this replica trusted
//     before, as happens to a replica that was cut off during several rotations. The replica trusts
//     the new CA, and logs an error with its fingerprint and the field managers that wrote it. If
//     neither you nor another replica wrote this CA, treat the webhooks as compromised, because its
//     key can sign certificates for them.
//
// The field manager of replicas is crdkit-authority. Because each client chooses the name of its
// field manager, only the audit log of the API server proves the writer. A replica that starts, or
// that follows another replica, logs one line with the CAs, which is not an error.
//
// A change that repeats many times is logged less often, with the number of repetitions in "times".
// Errors of the API server are logged too, and so are registrations that lack the next CA for ten
// times [PropagationDelay] and a little more; the rotation waits for them until the current CA expires.
//
// # Removing a CA
//
// To remove previous CAs before they expire, remove previous.crt, and their certificates in
// ca.crt, in one edit. If the two do not match, the Secret is restored.
//
// # Permissions and security
//
// The service account needs the permissions of [PolicyRules]; without watch, changes are seen after
// five seconds. The Secret must not be immutable, and may have any type; a new one has the type
// kubernetes.io/tls. Other keys and metadata are preserved. A user who can read the Secret can
// impersonate the webhooks to the API server.
//
// The package issues no client certificates, and no certificates for other programs.
package authority
