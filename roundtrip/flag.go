package roundtrip

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// What is set for one run, by a flag or by an environment variable. Flags must be there
// when package flag reads the command line, before any test runs; their names have a
// prefix because a test binary's flags share one name space.
var (
	seedSetting       = newSetting("seed", "check the objects that this number stands for")
	iterationsSetting = newSetting("iterations", "check each law with so many objects on each path")
	timeSetting       = newSetting("time", "check each kind for so long, such as 30s")
	updateSetting     = newSetting("update", "true: write the golden files of the current release")
)

// setting is known as -roundtrip.name and as CRDKIT_ROUNDTRIP_NAME.
type setting struct {
	name string
	flag *string
}

func newSetting(name, usage string) setting {
	s := setting{name: name}
	s.flag = flag.String("roundtrip."+name, "", usage+"; or set "+s.variable())
	return s
}

func (s setting) variable() string { return "CRDKIT_ROUNDTRIP_" + strings.ToUpper(s.name) }

// get returns the value and where it comes from; the flag counts more. It is empty if
// there is none.
func (s setting) get() (value, from string) {
	if *s.flag != "" {
		return *s.flag, "-roundtrip." + s.name
	}
	return os.Getenv(s.variable()), s.variable()
}

// override changes what the options say to what is set for this run.
func (c *config) override() {
	if text, from := seedSetting.get(); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			c.fault("%s: %w", from, err)
		}
		c.seed, c.seeded = seed, true
	}
	if text, from := iterationsSetting.get(); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			c.fault("%s: %q is no number of objects", from, text)
		}
		c.iterations, c.time = n, 0
	}
	if text, from := timeSetting.get(); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			c.fault("%s: %q is no time, such as 30s", from, text)
		}
		c.time, c.iterations = d, 0
	}
}

// fault notes what is wrong with the options.
func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}
