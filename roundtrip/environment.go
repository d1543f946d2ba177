package roundtrip

import (
	"fmt"
	"os"
	"strconv"
)

// These variables override options for one run. Flags would not do: go test passes them to
// each package that it tests, also to those that do not know them.
const (
	seedVariable       = "CRDKIT_ROUNDTRIP_SEED"
	iterationsVariable = "CRDKIT_ROUNDTRIP_ITERATIONS"
	updateVariable     = "CRDKIT_ROUNDTRIP_UPDATE"
)

// override changes what the options say to what the environment says.
func (c *config) override() {
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			c.fault("%s: %w", seedVariable, err)
		}
		c.seed, c.seeded = seed, true
	}
	if text := os.Getenv(iterationsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			c.fault("%s: %q is not a number of objects", iterationsVariable, text)
		}
		c.iterations = n
	}
}

// updating reports whether golden files are to be written.
func updating() (bool, error) {
	text := os.Getenv(updateVariable)
	if text == "" {
		return false, nil
	}
	update, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s: %q is neither true nor false", updateVariable, text)
	}
	return update, nil
}
