package show

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// emptyMenu is a walkthrough that leaves nothing to look at.
type emptyMenu struct{}

func (emptyMenu) Steps() []Step               { return nil }
func (emptyMenu) Leave(context.Context) error { return errors.New("no toppings") }
func (emptyMenu) Close() error                { return nil }

// A demo that is kept runs on, even if there is nothing to look at.
func TestLeave_EmptyMenu(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			leave(ctx, emptyMenu{}, "kubeconfig", "kubectl")
			close(ended)
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it ended by itself")
		default:
		}
		interrupt()
		<-ended
	})
}
