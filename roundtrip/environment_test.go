package roundtrip

import (
	"testing"
	"time"
)

func TestEnvironment_OverridesOptions(t *testing.T) {
	options := []Option{Seed(1), Iterations(1)}
	check := func(seed uint64, iterations int, d time.Duration) {
		t.Helper()
		c, err := newConfig(options)
		if err != nil || c.seed != seed || c.iterations != iterations || c.time != d {
			t.Errorf("got seed %d, iterations %d, time %v, %v", c.seed, c.iterations, c.time, err)
		}
	}
	check(1, 1, 0)
	t.Setenv(seedVariable, "2")
	t.Setenv(iterationsVariable, "2")
	check(2, 2, 0)
	t.Setenv(timeVariable, "3s")
	check(2, 0, 3*time.Second)
	for _, name := range []string{seedVariable, iterationsVariable, timeVariable} {
		t.Setenv(name, "-1")
		if _, err := newConfig(nil); err == nil {
			t.Errorf("%s=-1 is no error", name)
		}
		t.Setenv(name, "")
	}
	t.Setenv(updateVariable, "perhaps")
	if _, err := updating(); err == nil {
		t.Errorf("%s=perhaps is no error", updateVariable)
	}
}
