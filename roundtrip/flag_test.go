package roundtrip

import (
	"testing"
	"time"
)

func TestAFlagCountsMoreThanTheEnvironmentAndThatMoreThanOptions(t *testing.T) {
	options := []Option{Seed(1), Iterations(1)}
	check := func(seed uint64, iterations int, d time.Duration) {
		t.Helper()
		c, err := newConfig(options)
		if err != nil || c.seed != seed || c.iterations != iterations || c.time != d {
			t.Errorf("got seed %d, iterations %d, time %v, %v", c.seed, c.iterations, c.time, err)
		}
	}
	set := func(s setting, value string) {
		*s.flag = value
		t.Cleanup(func() { *s.flag = "" })
	}
	check(1, 1, 0)
	t.Setenv("CRDKIT_ROUNDTRIP_SEED", "2")
	t.Setenv("CRDKIT_ROUNDTRIP_ITERATIONS", "2")
	check(2, 2, 0)
	set(seedSetting, "3")
	set(iterationsSetting, "3")
	check(3, 3, 0)
	set(timeSetting, "3s")
	check(3, 0, 3*time.Second)
	for _, s := range []setting{seedSetting, iterationsSetting, timeSetting} {
		set(s, "-1")
		if _, err := newConfig(nil); err == nil {
			t.Errorf("-roundtrip.%s=-1 is no error", s.name)
		}
		set(s, "")
	}
	set(updateSetting, "perhaps")
	if _, err := updating(); err == nil {
		t.Error("-roundtrip.update=perhaps is no error")
	}
}
