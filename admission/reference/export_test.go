package reference

import "golang.org/x/time/rate"

// LimitReads replaces the limits of a target's live reads.
func LimitReads(t *Target, perSecond rate.Limit, burst int) {
	t.rate = rate.NewLimiter(perSecond, burst)
}
