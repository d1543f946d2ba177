package webhook

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// counted returns the accounts of connections, with n of them.
func counted(n int, maxBytes int64) (cs *connections, conns []*connection) {
	cs = &connections{max: n, maxBytes: maxBytes}
	for range n {
		client, server := net.Pipe()
		_ = client.Close()
		c := newConnection(server)
		c.element = cs.uses[fresh].PushBack(c)
		cs.n++
		conns = append(conns, c)
	}
	return cs, conns
}

func TestSilentRequestsTurnNobodyElseAway(t *testing.T) {
	cs, conns := counted(400, 512<<20)
	ours, others := conns[0], conns[1:]
	for _, c := range others {
		for range 100 {
			cs.begin(&exchange{conn: c, proto: 2, cost: requestCost})
		}
	}
	for i := range 99 {
		if !cs.begin(&exchange{conn: ours, proto: 2, cost: requestCost}) || ours.element == nil {
			t.Fatalf("request %d was turned away", i)
		}
	}
	if cs.open > cs.maxBytes {
		t.Errorf("%d bytes are taken, of %d", cs.open, cs.maxBytes)
	}
}

func TestAConnectionThatTakesMostIsRefusedMoreBeforeItIsClosed(t *testing.T) {
	cs, conns := counted(1, 10*requestCost)
	var got []bool
	for range 21 {
		got = append(got, cs.begin(&exchange{conn: conns[0], proto: 2, cost: requestCost}), conns[0].element != nil)
	}
	var want []bool
	for i := range 21 {
		want = append(want, i < 10 || i == 20, i < 20)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARequestIsReceivedOnceAndNotAfterItsEnd(t *testing.T) {
	cs, conns := counted(1, 1<<20)
	c := conns[0]
	for range 2 {
		x := &exchange{conn: c, cost: requestCost}
		cs.begin(x)
		cs.received(x)
		cs.received(x)
		cs.end(x, true)
		cs.received(x)
	}
	x := &exchange{conn: c, cost: requestCost}
	cs.begin(x)
	cs.end(x, true)
	cs.received(x)
	type account struct {
		Requests, Received, Use int
		Total, Open, Held       int64
	}
	if diff := cmp.Diff(account{Use: idle}, account{c.requests, c.received, c.use, cs.total, cs.open, c.held.bytes}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyResetsThatComeSoonCloseAConnection(t *testing.T) {
	for name, c := range map[string]struct {
		resets, answers int
		after           time.Duration
		open            bool
	}{
		"rapid resets":                 {resets: 110, open: false},
		"some":                         {resets: 90, open: true},
		"many, and as many answers":    {resets: 1000, answers: 1, open: true},
		"requests that have timed out": {resets: 1000, after: time.Second, open: true},
	} {
		cs, conns := counted(1, 1<<30)
		for range c.resets {
			cs.reset(&exchange{conn: conns[0], start: time.Now().Add(-c.after)})
			for range c.answers {
				x := &exchange{conn: conns[0]}
				cs.begin(x)
				cs.end(x, true)
			}
		}
		if got := conns[0].element != nil; got != c.open {
			t.Errorf("%s: open is %t", name, got)
		}
	}
}

// Whether it has a body or not.
func TestALargeHeaderOfARequestCounts(t *testing.T) {
	var got []int64
	for _, n := range []int{0, 2000, 6000, 15000} {
		got = append(got, cost(&http.Request{RequestURI: "/x", Host: "host", Header: http.Header{"Ab": {strings.Repeat("x", n)}}})>>10)
	}
	if diff := cmp.Diff([]int64{16, 16, 20, 28}, got); diff != "" {
		t.Errorf("in KiB (-want +got):\n%s", diff)
	}
}

func TestWhoHoldsAllOtherConnectionsDrivesNoNewcomerOut(t *testing.T) {
	for _, use := range []int{idle, receiving} {
		cs, conns := counted(80, 1<<30)
		for _, c := range conns {
			x := &exchange{conn: c}
			cs.begin(x)
			if use == idle {
				cs.end(x, true)
			}
		}
		var newcomers []*connection
		for range 20 {
			client, server := net.Pipe()
			_ = client.Close()
			c := newConnection(server)
			cs.add(t.Context(), tls.Server(c, &tls.Config{}))
			newcomers = append(newcomers, c)
		}
		var open []bool
		for _, c := range newcomers {
			open = append(open, c.element != nil)
		}
		want := slices.Concat(slices.Repeat([]bool{false}, 9), slices.Repeat([]bool{true}, 11)) // an eighth, and the last
		if diff := cmp.Diff(want, open); diff != "" {
			t.Errorf("with the others in use %d (-want +got):\n%s", use, diff)
		}
		if cs.n != 80 {
			t.Errorf("there are %d connections", cs.n)
		}
	}
}
