package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Option changes how Serve works, and what TLSConfig returns.
type Option func(*settings)

type settings struct {
	drain, delay   time.Duration
	companions     []func(context.Context) error
	tls12          bool
	verify         bool
	clients        *Clients
	maxConnections int
	maxBodyBytes   int64
}

// apply returns the settings, and an error that joins all that is wrong with them.
func apply(opts []Option) (settings, error) {
	set := settings{
		drain:          30 * time.Second,
		maxConnections: 4096,
		maxBodyBytes:   512 << 20,
	}
	for _, opt := range opts {
		opt(&set)
	}
	var errs []error
	if set.drain < 0 {
		errs = append(errs, fmt.Errorf("webhook: DrainTimeout is %s: give it a time that is not negative", set.drain))
	}
	if set.delay < 0 {
		errs = append(errs, fmt.Errorf("webhook: ShutdownDelay is %s: give it a time that is not negative", set.delay))
	}
	for _, run := range set.companions {
		if run == nil {
			errs = append(errs, errors.New("webhook: While was given nil: give it a function"))
		}
	}
	if set.maxConnections < 1 {
		errs = append(errs, fmt.Errorf("webhook: MaxConnections is %d: allow at least one", set.maxConnections))
	}
	if set.maxBodyBytes < 1 {
		errs = append(errs, fmt.Errorf("webhook: MaxBodyBytes is %d: allow at least one", set.maxBodyBytes))
	}
	return set, errors.Join(errs...)
}
