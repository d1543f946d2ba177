package registration

import (
	"math"
	"strings"
	"time"
)

// DeclaredAnnotation says on a registered object since when its declaration holds, and
// which it is: a time and a digest. [Webhooks.Reconcile] sets it, so that in a rolling
// update the replicas that have started before the last leave its declaration alone.
const DeclaredAnnotation = "registration.crdkit.github.io/declared"

// maxAhead is how far ahead of this replica's clock a claim may be. Clocks differ by less;
// what somebody has written there by hand must not hold for years.
const maxAhead = time.Hour

// claim is what the annotation says: from when on a declaration is meant to hold.
//
// The clocks of the replicas may differ, so a replica which starts and finds another
// declaration claims a later time than that in any case. It does so once: later on, whoever
// has a later claim is right.
type claim struct {
	time   int64 // in nanoseconds since 1970; without it, the claim orders nothing
	digest string
}

func (c claim) String() string {
	return time.Unix(0, c.time).UTC().Format(time.RFC3339Nano) + " " + c.digest
}

// parseClaim returns the zero claim for what cannot be read: anybody may write it. A claim
// that is too far ahead of now says who has registered the object, but not when.
func parseClaim(text string, now time.Time) claim {
	at, digest, ok := strings.Cut(text, " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	if !ok || digest == "" || err != nil {
		return claim{}
	}
	// Nanoseconds since 1970 end in the year 2262.
	if t.Unix() < 0 || t.Unix() >= math.MaxInt64/int64(time.Second) || t.After(now.Add(maxAhead)) {
		return claim{0, digest}
	}
	return claim{t.UnixNano(), digest}
}

// beats says whether a claim holds against another. Between claims of the same time somebody
// must win, no matter who.
func (c claim) beats(other claim) bool {
	if c.time != other.time {
		return c.time > other.time
	}
	return c.digest > other.digest
}

// after returns the claim with a time that is later than another's, if it is not already,
// and that parseClaim reads.
func (c claim) after(other claim) claim {
	if !c.beats(other) && other.time < math.MaxInt64-int64(time.Second) {
		c.time = other.time + 1
	}
	return c
}
