package authority

import "time"

// policy is how long certificates live.
type policy struct {
	name         string // of the CAs
	caLifetime   time.Duration
	rotateAfter  time.Duration
	leafLifetime time.Duration
}

// step returns the state that follows from one at a time, the same if none does.
// Each step is one that all replicas can be a step behind of, or ahead. ready
// says that the next CA is trusted everywhere.
func (p policy) step(s *state, now time.Time, ready bool) (*state, error) {
	out := &state{current: s.current, next: s.next}
	for _, cert := range s.previous {
		// One that is not valid yet may be valid for others, whose clocks differ.
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
		// No replica serves with it, or no client accepts it: nothing is lost by haste.
		if !now.After(out.current.cert.NotAfter) {
			out.retire(out.current.cert)
		}
		if out.current, out.next, changed = out.next, nil, true; out.current == nil {
			var err error
			if out.current, err = newCA(p.name, now, p.caLifetime); err != nil {
				return nil, err
			}
		}
	case out.next != nil && ready:
		out.retire(out.current.cert)
		out.current, out.next, changed = out.next, nil, true
	case out.next == nil && !now.Before(p.renewal(out.current)):
		return p.rotate(out, now)
	}
	if !changed {
		return s, nil
	}
	return out, nil
}

// rotate returns the state with a new CA as the next one.
func (p policy) rotate(s *state, now time.Time) (*state, error) {
	next, err := newCA(p.name, now, p.caLifetime)
	if err != nil {
		return nil, err
	}
	return s.followedBy(next)
}

// followedBy returns the state with another CA as the next one.
func (s *state) followedBy(next *ca) (*state, error) {
	next, err := s.current.crossed(next)
	if err != nil {
		return nil, err
	}
	return &state{current: s.current, next: next, previous: s.previous}, nil
}

// renewal is when a CA is to be followed by another: after the policy's time, or half of
// its own, should that be earlier.
func (p policy) renewal(c *ca) time.Time {
	made := c.cert.NotBefore.Add(skew)
	if !made.Before(c.cert.NotAfter) { // it is not one of ours
		made = c.cert.NotBefore
	}
	return made.Add(min(p.rotateAfter, c.cert.NotAfter.Sub(made)/2))
}

// reconciled returns the state that follows the Secret's where this replica has served with
// another one, mine, until now. The Secret's is usually the same or a later one. It may be an earlier
// one, which another replica remembered and wrote when the Secret was gone: then it is
// mine that stays. And it may come from outside: then its
// CA becomes the next one. So no replica ever serves with a CA that others have not
// heard of.
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
	if mine.next != nil { // it may be trusted by now, and is not used
		out.retire(mine.next.cert)
	}
	return out.followedBy(theirs.current)
}

// follows reports whether theirs trusts the certificate that mine serves with.
func follows(mine, theirs *state, now time.Time) bool {
	return mine == nil || !valid(mine.current.cert, now) || theirs.trusts(mine.current.cert)
}
