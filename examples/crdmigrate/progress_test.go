package crdmigrate

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion/migrate"
)

func TestProgress_OneLineOnATerminal(t *testing.T) {
	for terminal, want := range map[bool]string{
		true: "\r\x1b[Kpizzas: 0 of 9 objects, 0 rewritten, 0 failed" +
			"\r\x1b[Kpizzas: waiting 1s, until no API server stores in an old version any more (--propagation-delay)\n\r\x1b[K",
		false: "pizzas: waiting 1s, until no API server stores in an old version any more (--propagation-delay)\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := &progress{out: &out, name: "pizzas", terminal: terminal}
			p.show(migrate.Progress{Total: 9})
			p.show(migrate.Progress{Total: 9}) // too soon
			time.Sleep(linePace)
			p.show(migrate.Progress{Total: 9})
			p.show(migrate.Progress{Waiting: time.Second})
			p.end()
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("terminal %t (-want +got):\n%s", terminal, diff)
			}
		})
	}
}
