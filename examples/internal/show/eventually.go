package show

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// permanent is an error after which there is no point in trying again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent has Eventually give up with the error.
func Permanent(err error) error { return permanent{err} }

// Eventually tries until there is no error, or a permanent one, or time is up.
func Eventually(ctx context.Context, timeout time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := try()
		var stop permanent
		if err == nil || errors.As(err, &stop) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s still: %w", timeout, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
