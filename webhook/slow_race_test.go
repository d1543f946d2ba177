//go:build race

package webhook_test

import "time"

// slowness is how many times fewer attackers there are than there would be: the race
// detector makes a handshake take ten milliseconds of each side.
const slowness = 8

// patience is how long a well-behaved client waits while somebody misbehaves. It is a
// second where the race detector does not slow both sides down.
const patience = 3 * time.Second
