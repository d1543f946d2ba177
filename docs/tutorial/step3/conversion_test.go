package library

import (
	"testing"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), roundtrip.CRD(definition), roundtrip.History("testdata/history"))
}

func TestStoredBooks(t *testing.T) {
	roundtrip.Golden(t, registry(t), "testdata/golden", "v0.1", roundtrip.CRD(definition))
}

func registry(t *testing.T) *conversion.Registry {
	t.Helper()
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	reg, err := newRegistry(s)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}
