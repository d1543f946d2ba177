package webhook

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reader is a request of which something is read, without a server around it.
func reader(c *connection) *exchange {
	return &exchange{ResponseWriter: httptest.NewRecorder(), conn: c}
}

// What a read costs does not depend on how many small requests there are, even when
// there are too many.
func BenchmarkReadBesideManySmallRequests(b *testing.B) {
	for _, n := range []int{100, 28000, 30000, 32000, 400000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bs := newBodies(512 << 20)
			var conn *connection
			for i := range n {
				if i%100 == 0 {
					conn = newConnection(nil)
				}
				bs.read(reader(conn), 16<<10, false)
			}
			x := reader(newConnection(nil))
			for b.Loop() {
				if bs.read(x, 1, false); x.size > 30000 || x.cutOff {
					bs.end(x)
					x = reader(x.conn)
				}
			}
		})
	}
}

func TestASmallRequestIsNotCutOffForWhatManyOtherConnectionsHold(t *testing.T) {
	bs := newBodies(16 << 20)
	var theirs []*exchange
	for range 20 { // connections, with twice as much in all as there may be
		c := newConnection(nil)
		for range 100 {
			x := reader(c)
			bs.read(x, 16<<10, false)
			theirs = append(theirs, x)
		}
	}
	ours := newConnection(nil)
	for i := range 50 { // each larger than any of theirs
		x := reader(ours)
		if bs.read(x, 20<<10, false) {
			t.Errorf("request %d was cut off, while others have more", i)
		}
		bs.read(x, 0, true)
		bs.end(x)
	}
	if bs.total-bs.condemned > bs.max {
		t.Errorf("%d bytes are read, of %d", bs.total-bs.condemned, bs.max)
	}
	for _, x := range theirs {
		bs.end(x)
	}
	type account struct {
		Total, Condemned int64
		Large, Shares    int
	}
	if diff := cmp.Diff(account{}, account{bs.total, bs.condemned, len(bs.large), len(bs.shares.heap)}); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

func TestWhatIsReadAfterTheEndIsNotCounted(t *testing.T) {
	bs := newBodies(1 << 20)
	x := reader(newConnection(nil))
	bs.read(x, 1000, false)
	bs.end(x)
	bs.read(x, 1000, false)
	bs.read(x, 1000, true)
	if diff := cmp.Diff([]int64{0, 0}, []int64{bs.total, int64(len(bs.shares.heap))}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
