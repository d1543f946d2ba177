package registration

import (
	"strings"
	"time"
)

// DeclaredAnnotation says on a registered object since when its declaration holds, and
// which it is: a time and a digest. [Webhooks.Reconcile] sets it, so that in a rolling
// update the replicas that have started before the last leave its declaration alone.
const DeclaredAnnotation = "registration.crdkit.github.io/declared"

// claim is what the annotation says: from when on a declaration is meant to hold.
//
// The clocks of the replicas may differ, so a replica which starts and finds another
// declaration claims a later time than that in any case. It does so once: later on, whoever
// has a later claim is right.
type claim struct {
	time   int64 // in nanoseconds since 1970
	digest string
}

func (c claim) String() string {
	return time.Unix(0, c.time).UTC().Format(time.RFC3339Nano) + " " + c.digest
}

// parseClaim returns the zero claim for what cannot be read: anybody may write it.
func parseClaim(text string) claim {
	at, digest, ok := strings.Cut(text, " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	// Beyond these years, nanoseconds overflow.
	if !ok || digest == "" || err != nil || t.Year() < 1970 || t.Year() > 2261 {
		return claim{}
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
