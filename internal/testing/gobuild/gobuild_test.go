package gobuild_test

import (
	"debug/buildinfo"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/crdkit/crdkit/internal/testing/gobuild"
)

func TestBinary_HasTheRaceDetectorIfTheTestHas(t *testing.T) {
	built, err := buildinfo.ReadFile(gobuild.Binary(t, "./testdata/hello"))
	if err != nil {
		t.Fatal(err)
	}
	test, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test binary has no build information")
	}
	race := debug.BuildSetting{Key: "-race", Value: "true"}
	if got, want := slices.Contains(built.Settings, race), slices.Contains(test.Settings, race); got != want {
		t.Errorf("built with -race: %v, want %v", got, want)
	}
}
