package main

import "testing"

// TestConversion_Alike checks that both sides return the same result, because a side that omits
// work is faster.
func TestConversion_Alike(t *testing.T) {
	if err := compareAnswers(crdkitConversion(), peerConversion()); err != nil {
		t.Error(err)
	}
	if size := len(pizza(0, 0)); size < 1200 || size > 1400 {
		t.Errorf("a pizza has %d bytes", size)
	}
}
