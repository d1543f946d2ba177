package reference

import (
	"sync"
	"sync/atomic"
)

// sideBySide calls a function for all items, in so many goroutines at most, and
// returns the first error, by the order of the items. After an error it begins no
// more. A panic of the function is one of sideBySide.
func sideBySide[T any](items []T, most int, f func(T) error) error {
	if len(items) == 1 {
		return f(items[0])
	}
	errs := make([]error, len(items))
	panics := make([]any, len(items))
	var next atomic.Int64
	var failed atomic.Bool
	one := func(i int) {
		defer func() {
			if panics[i] = recover(); panics[i] != nil {
				failed.Store(true)
			}
		}()
		if errs[i] = f(items[i]); errs[i] != nil {
			failed.Store(true)
		}
	}
	var wg sync.WaitGroup
	for range min(most, len(items)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(items) && !failed.Load(); i = next.Add(1) - 1 {
				one(int(i))
			}
		})
	}
	wg.Wait()
	for i := range items {
		if panics[i] != nil {
			panic(panics[i])
		}
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}
