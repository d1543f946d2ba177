package webhook

// Status gives the metrics of package webhook/metrics their values, for example those of
// replica.Run. A field that is nil has no metrics. All functions must be safe for concurrent use.
type Status struct {
	Certificates Certificates
	// CABundle returns the PEM certificates that the API server should trust, or nothing as long as
	// there are none.
	CABundle func() []byte
	// Differences yields the fields of registered objects that differ from their declaration.
	Differences func(yield func(kind, name, field string))
	// Changes yields how often this process has changed an object, for each reason.
	Changes func(yield func(kind, name, reason string, total int))
}
