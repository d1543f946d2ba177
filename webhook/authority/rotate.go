package authority

import "time"

// step returns the state that follows from s, or s if no step is due. Replicas may be one step
// behind or ahead of one another. ready means that the next CA is trusted everywhere.
func (a *Authority) step(s *state, now time.Time, ready bool) (*state, error) {
	out := &state{current: s.current, next: s.next}
	for _, cert := range s.previous {
		// A CA that is not valid yet may be valid by the clocks of others.
		if !now.After(cert.NotAfter) {
			out.retire(cert)
		}
	}
	changed := len(out.previous) != len(s.previous)
	if out.next != nil && !valid(out.next.cert, now) {
		out.next, changed = nil, true
	}
	switch {
	case !valid(out.current.cert, now):
		// No replica serves with this CA, or no client accepts it. There is no need to wait.
		if !now.After(out.current.cert.NotAfter) {
			out.retire(out.current.cert)
		}
		if out.current, out.next, changed = out.next, nil, true; out.current == nil {
			fresh, err := newCA(a.name, now, a.caLifetime)
			if err != nil {
				return nil, err
			}
			// No client accepts the cross certificate, but other replicas see who made the CA.
			if out.current, err = s.current.crossed(fresh); err != nil {
				return nil, err
			}
		}
	case out.next != nil && ready:
		out.retire(out.current.cert)
		out.current, out.next, changed = out.next, nil, true
	case out.next == nil && !now.Before(a.renewal(out.current)):
		return a.rotate(out, now)
	}
	if !changed {
		return s, nil
	}
	return out, nil
}

// rotate returns the state with a new CA as the next one.
func (a *Authority) rotate(s *state, now time.Time) (*state, error) {
	next, err := newCA(a.name, now, a.caLifetime)
	if err != nil {
		return nil, err
	}
	return s.followedBy(next)
}

// followedBy returns the state with the given next CA.
func (s *state) followedBy(next *ca) (*state, error) {
	next, err := s.current.crossed(next)
	return &state{current: s.current, next: next, previous: s.previous}, err
}

// renewal returns the time at which the rotation of a CA begins: at the age of [RotateAfter], or
// at half of the CA's own lifetime if that is earlier.
func (a *Authority) renewal(c *ca) time.Time {
	made := c.cert.NotBefore.Add(skew)
	if !made.Before(c.cert.NotAfter) { // another program created the CA
		made = c.cert.NotBefore
	}
	return made.Add(min(a.rotateAfter, c.cert.NotAfter.Sub(made)/2))
}

// reconciled returns the next state of the Secret, if this replica has served with the state
// mine until now. Then no replica ever serves with a CA that others do not know:
//
//   - The Secret's state is usually the same or a later one, and is kept.
//   - An earlier state, which another replica remembered and wrote after the Secret was
//     deleted, is replaced by mine.
//   - The CA of a state from another program becomes the next CA.
func reconciled(mine, theirs *state, now time.Time) (*state, error) {
	switch {
	case follows(mine, theirs, now):
		return theirs, nil
	case !valid(theirs.current.cert, now), mine.trusts(theirs.current.cert):
		return mine, nil
	}
	out := &state{current: mine.current, previous: mine.previous}
	for _, cert := range theirs.previous {
		if len(out.previous) < maxPrevious {
			out.retire(cert)
		}
	}
	if mine.next != nil { // API servers may trust it by now, but no replica uses it
		out.retire(mine.next.cert)
	}
	return out.followedBy(theirs.current)
}

// follows reports whether theirs trusts the CA that mine serves with.
func follows(mine, theirs *state, now time.Time) bool {
	return mine == nil || !valid(mine.current.cert, now) || theirs.trusts(mine.current.cert)
}
