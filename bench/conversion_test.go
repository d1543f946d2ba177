package main

import "testing"

// TestBothConvertAlike keeps speed from coming out of leaving work undone.
func TestBothConvertAlike(t *testing.T) {
	if err := compareAnswers(crdkitConversion(), peerConversion()); err != nil {
		t.Error(err)
	}
	if size := len(pizza(0, 0)); size < 1200 || size > 1400 {
		t.Errorf("a pizza has %d bytes", size)
	}
}
