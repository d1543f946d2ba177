//go:build race

package webhook_test

// slowness is how many times fewer attackers there are than there would be: the race
// detector makes a handshake take ten milliseconds of each side.
const slowness = 8
