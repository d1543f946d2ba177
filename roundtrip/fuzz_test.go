package roundtrip

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzJobs(f *testing.F) {
	var planted bug
	if name, ok := strings.CutPrefix(os.Getenv("TEST_OF_A_USER"), "fuzz "); ok {
		planted = bugNamed(f, name)
	}
	Fuzz(f, planted.jobs(f), Funcs(jobFuncs...))
}

// A stream of draws is its bytes.
func TestStreamOf_Bytes(t *testing.T) {
	stream := []uint64{1, 0, 1<<63 + 5}
	if diff := cmp.Diff(stream, streamOf(bytesOf(stream))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{1 << 56, 2 << 56}, streamOf([]byte{1, 0, 0, 0, 0, 0, 0, 0, 2})); diff != "" {
		t.Errorf("what the last draw lacks is not zero:\n%s", diff)
	}
}

// The objects that the engine begins with find what is not rare.
func TestFuzz_ReportsTheSmallestObject(t *testing.T) {
	output, failed := runTestOfAUser(t, "fuzz dropped field", "^FuzzJobs$")
	for _, want := range []string{"--- FAIL: FuzzJobs/seed#", ": the round-trip law does not hold", "note: "} {
		if !failed || !strings.Contains(output, want) {
			t.Errorf("no %q in:\n%s", want, output)
		}
	}
	if output, failed := runTestOfAUser(t, "", "^FuzzJobs$"); failed {
		t.Error(output)
	}
}
