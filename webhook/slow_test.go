//go:build !race

package webhook_test

// slowness is how many times fewer attackers there are than there would be.
const slowness = 1
