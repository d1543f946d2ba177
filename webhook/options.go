package webhook

import (
	"context"
	"time"
)

// Option changes how [Serve] works. Only [VerifyClients] also changes the result of
// [TLSConfig].
type Option func(*settings)

type settings struct {
	drain, delay time.Duration
	companions   []func(context.Context) error
	clients      *Clients
}

func apply(opts []Option) settings {
	set := settings{drain: 30 * time.Second}
	for _, opt := range opts {
		opt(&set)
	}
	return set
}
