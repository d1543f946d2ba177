package collectors_test

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdkit/crdkit/internal/collectors"
)

func TestAllAreRegisteredOrNone(t *testing.T) {
	counter := func(name string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name})
	}
	r := prometheus.NewRegistry()
	other := counter("b")
	r.MustRegister(other)
	var already prometheus.AlreadyRegisteredError
	if err := collectors.Register(r, counter("a"), counter("b")); !errors.As(err, &already) {
		t.Fatalf("got %v", err)
	}
	r.Unregister(other)
	if err := collectors.Register(r, counter("a"), counter("b")); err != nil {
		t.Errorf("what the first attempt registered is still there: %v", err)
	}
}
