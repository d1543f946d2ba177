package schema

import (
	"context"
	"testing"
)

func TestInTime_PanicsAsItsWork(t *testing.T) {
	defer func() {
		if got := recover(); got != "upstream" {
			t.Errorf("got %v", got)
		}
	}()
	_ = inTime(t.Context(), func(context.Context) error { panic("upstream") })
}
