package logcheck

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// Record returns a context whose logger keeps its lines, except for those of verbosity 1 and more, and a function that
// returns the lines so far. A line of Info begins with "level", and one of Error does not.
func Record(ctx context.Context) (logged context.Context, lines func() []string) {
	var mu sync.Mutex
	var all []string
	logger := funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, line)
	}, funcr.Options{})
	return klog.NewContext(ctx, logger), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
