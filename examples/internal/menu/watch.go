package menu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// WatchOther watches a pizza in v1alpha1 that is changed in v1beta1.
func (g Guest) WatchOther(ctx context.Context) error {
	// A list, and not the pizza by its name: that kubectl watches from any resourceVersion, and
	// drops the first event, which may be the change (kubectl/pkg/cmd/get/get.go, watch).
	args := []string{"get", Alphas, "--field-selector=metadata.name=watched", "--watch", "-o", "json", "--output-watch-events"}
	fmt.Fprintf(g.Out, "$ kubectl %s &\n", show.Quote(args))
	watchCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := g.Command(watchCtx, args...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.Succeed(ctx, Manifest(v1beta1.GroupVersion.String(), "Pizza", "watched", "spec:\n  toppings: [{name: tomato}]"), Create); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	decoder := json.NewDecoder(bufio.NewReader(events))
	// Only what comes after the first event comes by the watch.
	if toppings, err := g.event(decoder, watch.Added); err != nil {
		return err
	} else if !slices.Equal(toppings, []string{"tomato"}) {
		return fmt.Errorf("the pizza begins with %q", toppings)
	}
	if err := g.Succeed(ctx, "", []string{"patch", Betas, "watched", "--type=merge", "-p", `{"spec":{"toppings":[{"name":"tomato","quantity":3}]}}`}); err != nil {
		return err
	}
	for { // writing its cost changes it, too
		toppings, err := g.event(decoder, watch.Modified)
		if err != nil || slices.Equal(toppings, []string{"tomato", "tomato", "tomato"}) {
			return err
		}
	}
}

// event shows an event of a pizza, which must be of that type and in v1alpha1, and returns its
// toppings.
func (g Guest) event(decoder *json.Decoder, want watch.EventType) ([]string, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object v1alpha1.Pizza  `json:"object"`
	}
	if err := decoder.Decode(&event); err != nil {
		return nil, errors.Join(errors.New("the watch ended before the event came"), err)
	}
	fmt.Fprintf(g.Out, "  %s %s %s %q\n", event.Type, event.Object.APIVersion, event.Object.Name, event.Object.Spec.Toppings)
	switch {
	case event.Type != want:
		return nil, fmt.Errorf("the event is %s, not %s", event.Type, want)
	case event.Object.APIVersion != v1alpha1.GroupVersion.String():
		return nil, fmt.Errorf("the event is in version %s", event.Object.APIVersion)
	}
	return event.Object.Spec.Toppings, nil
}
