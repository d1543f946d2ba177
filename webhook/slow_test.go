//go:build !race

package webhook_test

import "time"

// slowness is how many times fewer attackers there are than there would be.
const slowness = 1

// patience is how long a well-behaved client waits while somebody misbehaves.
const patience = time.Second
