package registration

// ReconcileOption changes what [Webhooks.Reconcile] does.
type ReconcileOption func(*reconciler)

// ClaimWhen has a replica replace rules that another declaration has registered only when
// ready returns true: when this replica could serve the requests that its own rules bring.
// Until then it does as a replica of an older release: it repairs the CA bundle in the rules
// that are there, and [Webhooks.Check] passes if they carry it. What nobody has registered is
// written at once. Without this option, rules are replaced at once.
//
// ready is called five times a second until it has returned true, never twice at a time. It
// must be quick. See "Several replicas, and rolling updates" in the package documentation.
func ClaimWhen(ready func() bool) ReconcileOption {
	return func(r *reconciler) { r.ready = ready }
}
