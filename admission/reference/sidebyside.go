package reference

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// sideBySide calls a function for all items, in so many goroutines at most. A panic of
// the function is one of sideBySide, and its stack is in the log; after one it begins
// no more.
func sideBySide[T any](ctx context.Context, items []T, most int, f func(T)) {
	if len(items) == 1 {
		f(items[0])
		return
	}
	panics := make([]any, len(items))
	var next atomic.Int64
	var panicked atomic.Bool
	one := func(i int) {
		defer func() {
			if v := recover(); v != nil {
				panics[i] = v
				panicked.Store(true)
				logPanic(ctx, fmt.Errorf("panic: %v", v), "The check of a reference panicked")
			}
		}()
		f(items[i])
	}
	var wg sync.WaitGroup
	for range min(most, len(items)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(items) && !panicked.Load(); i = next.Add(1) - 1 {
				one(int(i))
			}
		})
	}
	wg.Wait()
	for _, v := range panics {
		if v != nil {
			panic(v)
		}
	}
}
