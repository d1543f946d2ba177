package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Option changes how Serve works. Of them, [VerifyClients] alone changes what TLSConfig
// returns.
type Option func(*settings)

type settings struct {
	drain, delay time.Duration
	companions   []func(context.Context) error
	verify       bool
	clients      *Clients
	maxBodyBytes int64
}

// apply returns the settings, and an error that joins all that is wrong with the
// arguments.
func apply(certs Certificates, opts []Option) (settings, error) {
	set := settings{drain: 30 * time.Second, maxBodyBytes: 512 << 20}
	for _, opt := range opts {
		opt(&set)
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("webhook: "+format, args...)) }
	if certs == nil {
		wrong("the certificates are nil: give what Files returned, and look at the error of that")
	}
	for _, run := range set.companions {
		if run == nil {
			wrong("RunAlongside was given nil: give it a function")
		}
	}
	if set.verify && set.clients == nil {
		wrong("VerifyClients was given nil: give it what ClientsOf returned, and look at the error of that")
	}
	if set.maxBodyBytes < 1 {
		wrong("MaxBodyBytes is %d: allow at least one", set.maxBodyBytes)
	}
	return set, errors.Join(errs...)
}
