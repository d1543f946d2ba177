package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The release is what the API server says.
func TestRelease_FromAPIServer(t *testing.T) {
	for text, want := range map[string]release{
		`{"major":"1","minor":"33","gitVersion":"v1.33.13"}`:                  {"v1.33.13", 33},
		`{"major":"1","minor":"36+","gitVersion":"v1.36.0-rc.1.12+0123abcd"}`: {"v1.36.0-rc.1.12+0123abcd", 36},
		`{"gitVersion":"v1.34.4-gke.1"}`:                                      {"v1.34.4-gke.1", 34},
	} {
		got, err := readRelease([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(release{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{``, `{}`, `{"gitVersion":"main"}`, `[]`} {
		if got, err := readRelease([]byte(text)); err == nil {
			t.Errorf("%q is release %v", text, got)
		}
	}
}
