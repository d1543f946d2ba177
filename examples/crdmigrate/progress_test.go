package crdmigrate

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// The wait for the first list is shown after a second, and then every five seconds. A failed request
// has a line, too.
func TestProgress_BeforeTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, "pizzas", "waiting for the first list of objects")
		time.Sleep(8 * time.Second)
		p.show(migrate.Progress{Waiting: time.Minute})
		time.Sleep(63 * time.Second)
		p.logger().Info("A request failed and is sent again", "err", errors.New("the webhook is away"))
		p.show(migrate.Progress{Total: 9})
		time.Sleep(time.Minute)
		p.end()
		want := `pizzas: waiting for the first list of objects, for 1s
pizzas: waiting for the first list of objects, for 6s
pizzas: waiting 1m0s, until no API server stores in an old version any more (--propagation-delay)
pizzas: waiting for the first list of objects, for 1m9s
msg="A request failed and is sent again" err="the webhook is away"
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestProgress_OneLineOnATerminal(t *testing.T) {
	for terminal, want := range map[bool]string{
		true: "\r\x1b[Kpizzas: 0 of 9 objects, 0 rewritten, 0 failed" +
			"\r\x1b[Kpizzas: waiting 1s, until no API server stores in an old version any more (--propagation-delay)\n\r\x1b[K",
		false: "pizzas: waiting 1s, until no API server stores in an old version any more (--propagation-delay)\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, "pizzas", "")
			p.terminal = terminal
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
