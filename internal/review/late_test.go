package review_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/crdkit/crdkit/internal/review"
)

// Functions that do not return keep the memory of their reviews, which limits their number.
func TestHandler_FunctionsDoNotReturn(t *testing.T) {
	end, calls, codes := make(chan struct{}), make(chan struct{}, 1000), make(chan int, 1000)
	h := protocol(func(context.Context, *review.Request) ([]byte, error) {
		calls <- struct{}{}
		<-end
		return []byte(`{}`), nil
	}).HandlerIn(64 << 10)
	const all = 100
	for range all {
		go func() { codes <- post(h, question).Code }()
	}
	for refused := 0; refused+len(calls) < all; {
		select {
		case code := <-codes:
			if refused++; code != http.StatusServiceUnavailable {
				t.Fatalf("got %d, want 503", code)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	on := len(calls)
	if on < 2 || on > 64 {
		t.Errorf("%d of %d functions go on", on, all)
	}
	close(end)
	for range on {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("got %d, want 200", code)
		}
	}
}
