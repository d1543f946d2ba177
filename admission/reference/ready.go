package reference

// source is an informer, as far as it says whether its answers count.
type source struct {
	of        string // what it holds
	hasSynced func() bool
	isStopped func() bool
}

// newSource takes what an informer, or the registration of a handler with it, says.
func newSource(of string, informer Informer, hasSynced func() bool) source {
	s := source{of: of, hasSynced: hasSynced, isStopped: func() bool { return false }}
	if stops, ok := informer.(interface{ IsStopped() bool }); ok {
		s.isStopped = stops.IsStopped
	}
	return s
}

// ready returns why the informer cannot be relied on; nil if it can.
func (s source) ready() *undecided {
	switch {
	case s.isStopped(): // what it has is of the past
		return unavailable("the informer of %s has stopped", s.of)
	case !s.hasSynced():
		return unavailable("the informer of %s has not synced yet", s.of)
	}
	return nil
}
