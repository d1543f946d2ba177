package apiserver

import (
	"testing"

	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/test/expect"
)

// The codecs of the server lose nothing, and defaults and deep copies are right. Package pizza tests
// the conversions.
func TestScheme(t *testing.T) {
	options, err := NewOptions()
	expect.NoError(t, err)
	roundtrip.TestScheme(t, options.scheme)
}
