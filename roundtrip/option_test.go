package roundtrip

import "testing"

func TestEnvironment_OverridesOptions(t *testing.T) {
	options := []Option{Seed(1), Iterations(1)}
	check := func(seed uint64, iterations int) {
		t.Helper()
		c, err := newConfig(options)
		if err != nil || c.seed != seed || c.iterations != iterations {
			t.Errorf("got seed %d, iterations %d, %v", c.seed, c.iterations, err)
		}
	}
	check(1, 1)
	t.Setenv(seedVariable, "2")
	t.Setenv(iterationsVariable, "2")
	check(2, 2)
	for _, name := range []string{seedVariable, iterationsVariable} {
		t.Setenv(name, "-1")
		if _, err := newConfig(nil); err == nil {
			t.Errorf("%s=-1 is no error", name)
		}
		t.Setenv(name, "")
	}
}
