package registration

import "time"

// TakeOverAfter has a replica take over rules of others that hold for so long.
func TakeOverAfter(d time.Duration) ReconcileOption {
	return func(r *reconciler) { r.takeOver = d }
}
