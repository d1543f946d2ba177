package apiserver

import (
	"testing"

	"github.com/crdkit/crdkit/roundtrip"
)

// The codecs of the server lose nothing, and defaults and deep copies are right. Package pizza tests
// the conversions.
func TestScheme(t *testing.T) {
	options, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.TestScheme(t, options.scheme)
}
