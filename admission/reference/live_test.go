package reference

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
)

var generous = limits{timeout: time.Minute, concurrency: 10, qps: 1000, burst: 1000}

// gate is a cluster that answers when it is opened, and counts the questions.
type gate struct {
	opened  chan struct{}
	asked   atomic.Int64
	now     atomic.Int64
	most    atomic.Int64
	ends    atomic.Int64 // questions whose context ended
	careful bool         // leaves when the context ends
}

func (g *gate) ask(ctx context.Context, key string) (string, error) {
	g.asked.Add(1)
	now := g.now.Add(1)
	defer g.now.Add(-1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	if g.careful {
		select {
		case <-g.opened:
		case <-ctx.Done():
			g.ends.Add(1)
			return "", ctx.Err()
		}
	}
	<-g.opened
	return key + " is fine", nil
}

// bubble runs a test in a bubble of goroutines whose time is not ours.
func bubble(t *testing.T, l limits, careful bool, test func(t *testing.T, g *gate, l *live[string, string])) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{opened: make(chan struct{}), careful: careful}
		test(t, g, newLive(l, g.ask))
	})
}

func TestConcurrentQuestionsShareAReadThatHasNotBeenSent(t *testing.T) {
	bubble(t, generous, false, func(t *testing.T, g *gate, l *live[string, string]) {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if got, err := l.do(t.Context(), "nails"); got != "nails is fine" || err != nil {
					t.Errorf("got %q and %v", got, err)
				}
			})
		}
		synctest.Wait()
		if g.asked.Load() != 1 {
			t.Errorf("%d reads are under way, want 1", g.asked.Load())
		}
		close(g.opened)
		wg.Wait()
		// The first may have been sent before the others came: they share the second.
		if n := g.asked.Load(); n > 2 {
			t.Errorf("100 questions took %d reads", n)
		}
		if len(l.last) > 0 {
			t.Errorf("%d requests are kept", len(l.last))
		}
	})
}

func TestNoAnswerIsOlderThanItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exists := false
		answer := make(chan struct{})
		l := newLive(generous, func(context.Context, string) (bool, error) {
			seen := exists
			<-answer
			return seen, nil
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if got, err := l.do(t.Context(), "tomato"); got || err != nil {
				t.Errorf("the read that began before: %v and %v", got, err)
			}
		})
		synctest.Wait()
		exists = true // while the first read is under way
		wg.Go(func() {
			if got, err := l.do(t.Context(), "tomato"); !got || err != nil {
				t.Errorf("an object that was created before the question: %v and %v", got, err)
			}
		})
		synctest.Wait()
		close(answer)
		wg.Wait()
	})
}

func TestACallerWhoLeavesDoesNotFailTheOthers(t *testing.T) {
	bubble(t, generous, true, func(t *testing.T, g *gate, l *live[string, string]) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range generous.concurrency { // no read is sent, so that both wait for one
			l.slots <- struct{}{}
		}
		wg.Go(func() {
			if _, err := l.do(ctx, "nails"); !errors.Is(err, context.Canceled) {
				t.Errorf("the one who leaves: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := l.do(t.Context(), "nails"); got != "nails is fine" || err != nil {
				t.Errorf("the one who stays: %q and %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(g.opened)
		<-l.slots
		wg.Wait()
		if g.asked.Load() != 1 {
			t.Errorf("%d reads, want 1", g.asked.Load())
		}
	})
}

func TestAReadThatNobodyWaitsForEnds(t *testing.T) {
	bubble(t, generous, true, func(t *testing.T, g *gate, l *live[string, string]) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := l.do(ctx, "nails"); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if g.ends.Load() != 1 || len(l.last) > 0 {
			t.Errorf("%d reads have ended, %d are kept", g.ends.Load(), len(l.last))
		}
		if _, err := l.do(ctx, "glue"); !errors.Is(err, context.Canceled) || g.asked.Load() != 1 {
			t.Errorf("who has left already: %v, %d reads", err, g.asked.Load())
		}
	})
}

func TestAQuestionEndsWithItsTimeEvenIfTheReadDoesNot(t *testing.T) {
	l := generous
	l.timeout = 2 * time.Second
	for _, careful := range []bool{true, false} {
		bubble(t, l, careful, func(t *testing.T, g *gate, l *live[string, string]) {
			begin := time.Now()
			if _, err := l.do(t.Context(), "nails"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("it took %s", took)
			}
			close(g.opened)
		})
	}
}

func TestAQuestionThatWaitsForItsTurnEndsWithItsTime(t *testing.T) {
	l := generous
	l.timeout, l.concurrency = 2*time.Second, 1
	bubble(t, l, false, func(t *testing.T, g *gate, l *live[string, string]) {
		begin := time.Now()
		var wg sync.WaitGroup
		for _, key := range []string{"nails", "nails", "glue"} {
			wg.Go(func() {
				if _, err := l.do(t.Context(), key); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 2*time.Second {
					t.Errorf("%s: %v after %s", key, err, time.Since(begin))
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if g.asked.Load() != 1 {
			t.Errorf("%d reads", g.asked.Load())
		}
		close(g.opened)
		synctest.Wait()
		if len(l.last) > 0 || len(l.slots) > 0 {
			t.Errorf("%d requests and %d slots are kept", len(l.last), len(l.slots))
		}
	})
}

func TestOnlySoManyReadsAreUnderWay(t *testing.T) {
	l := generous
	l.concurrency = 3
	bubble(t, l, true, func(t *testing.T, g *gate, l *live[string, string]) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := l.do(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(g.opened)
		wg.Wait()
		if g.asked.Load() != 20 || g.most.Load() != 3 {
			t.Errorf("%d reads, %d at a time", g.asked.Load(), g.most.Load())
		}
	})
}

func TestAReadBeginsItsTimeAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := generous
		l.timeout = 2 * time.Second
		reads := newLive(l, func(ctx context.Context, key string) (bool, error) {
			select {
			case <-time.After(1500 * time.Millisecond):
				return true, nil
			case <-ctx.Done():
				return false, ctx.Err()
			}
		})
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 2 { // the second comes when the first is under way, and is sent after it
			wg.Go(func() {
				want := time.Duration(i+1) * 1500 * time.Millisecond
				if got, err := reads.do(t.Context(), "tomato"); !got || err != nil || time.Since(begin) != want {
					t.Errorf("question %d: %v and %v after %s, want %s", i, got, err, time.Since(begin), want)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

func TestNobodyWaitsLongerThanTwiceTheTime(t *testing.T) {
	l := generous
	l.timeout = 2 * time.Second
	bubble(t, l, true, func(t *testing.T, g *gate, l *live[string, string]) {
		go func() { _, _ = l.do(t.Context(), "nails") }()
		synctest.Wait()
		time.Sleep(time.Second) // of the bubble
		begin := time.Now()
		_, err := l.do(t.Context(), "nails")
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("%v after %s, want 1 s for the turn and 2 s for the read", err, took)
		}
		synctest.Wait()
		if g.ends.Load() != 2 || len(l.last) > 0 {
			t.Errorf("%d reads have ended, %d are kept", g.ends.Load(), len(l.last))
		}
	})
}

func TestOverTheRateAReadWaits(t *testing.T) {
	l := generous
	l.qps, l.burst, l.timeout = 1, 2, 1500*time.Millisecond
	bubble(t, l, true, func(t *testing.T, g *gate, l *live[string, string]) {
		close(g.opened)
		begin := time.Now()
		waits := make([]time.Duration, 5) // until the answer, or until there would be one
		var wg sync.WaitGroup
		for i := range waits {
			key := fmt.Sprint(i)
			wg.Go(func() {
				_, err := l.do(t.Context(), key)
				wait := time.Since(begin)
				var over *tooManyError
				if errors.As(err, &over) {
					wait = -over.wait
				} else if err != nil {
					t.Errorf("%s: %v", key, err)
				}
				waits[i] = wait
			})
			synctest.Wait()
		}
		wg.Wait()
		// What has no token in time takes none, so that the last has to wait no longer.
		want := []time.Duration{0, 0, time.Second, -2 * time.Second, -2 * time.Second}
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if g.asked.Load() != 3 {
			t.Errorf("%d reads", g.asked.Load())
		}
	})
}

func TestATokenThatIsNotUsedIsGivenBack(t *testing.T) {
	l := generous
	l.qps, l.burst = 1, 1
	bubble(t, l, true, func(t *testing.T, g *gate, l *live[string, string]) {
		close(g.opened)
		if _, err := l.do(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := l.do(ctx, "b"); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		begin := time.Now()
		if _, err := l.do(t.Context(), "c"); err != nil || time.Since(begin) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

// logged returns a context whose log is kept.
func logged(ctx context.Context) (context.Context, func() string) {
	var mu sync.Mutex
	var lines []string
	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, args)
	}, funcr.Options{})
	return klog.NewContext(ctx, logger), func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

func outOfFlour() { panic("out of flour") }

func TestAPanicOfAReadIsItsErrorAndItsStackIsInTheLog(t *testing.T) {
	ctx, log := logged(t.Context())
	l := newLive(generous, func(context.Context, string) (bool, error) { outOfFlour(); return true, nil })
	for range 2 {
		if _, err := l.do(ctx, "a"); err == nil || err.Error() != "panic: out of flour" {
			t.Errorf("got %v", err)
		}
	}
	if !strings.Contains(log(), "reference.outOfFlour") {
		t.Errorf("the log is %s", log())
	}
}

func TestWhatIsDoneSideBySidePanicsAsOne(t *testing.T) {
	ctx, log := logged(t.Context())
	items := []int{0, 1, 2, 3, 4, 5, 6, 7}
	var called atomic.Int64
	defer func() {
		if v := recover(); v != "out of flour" || called.Load() != 3 || !strings.Contains(log(), "reference.outOfFlour") {
			t.Errorf("got a panic of %v after %d calls, and the log %s", v, called.Load(), log())
		}
	}()
	sideBySide(ctx, items, 1, func(i int) {
		called.Add(1)
		if i == 2 {
			outOfFlour()
		}
	})
}

func TestAllIsDoneSideBySide(t *testing.T) {
	for most := 1; most < 10; most++ {
		done := make([]int, 7)
		items := []int{0, 1, 2, 3, 4, 5, 6}
		sideBySide(t.Context(), items, most, func(i int) { done[i] = i })
		if diff := cmp.Diff(items, done); diff != "" {
			t.Errorf("%d at a time (-want +got):\n%s", most, diff)
		}
	}
}
