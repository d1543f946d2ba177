package gobuild_test

import (
	"debug/buildinfo"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
)

// A binary has the race detector if the test has it.
func TestBinary_RaceDetector(t *testing.T) {
	built, err := buildinfo.ReadFile(gobuild.Binary(t, "./testdata/hello"))
	expect.NoError(t, err)
	if got := slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"}); got != raceEnabled || gobuild.Race() != raceEnabled {
		t.Errorf("built with -race: %v, Race() is %v, want %v", got, gobuild.Race(), raceEnabled)
	}
}
