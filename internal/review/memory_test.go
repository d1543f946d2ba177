package review_test

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/review"
	"github.com/crdkit/crdkit/test/expect"
)

func TestMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for name, c := range map[string]struct {
		goMemLimit int64
		files      map[string]string
		want       int64
	}{
		"none":           {math.MaxInt64, nil, 2 << 30},
		"GOMEMLIMIT":     {5000, nil, 5000},
		"another system": {math.MaxInt64, map[string]string{"etc/hosts": ""}, 2 << 30},
		"version 2": {math.MaxInt64, map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "4000\n",
		}, 4000},
		"version 2, no limit": {math.MaxInt64, map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 2 << 30},
		"the lowest of nested ones": {math.MaxInt64, map[string]string{
			"proc/self/cgroup":               "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/memory.max": "max\n",
			"sys/fs/cgroup/a/b/memory.max":   "3000\n",
			"sys/fs/cgroup/a/memory.max":     "7000\n",
		}, 3000},
		"version 1": {math.MaxInt64, map[string]string{
			"proc/self/cgroup": "9:name=systemd:/a\n4:cpu,cpuacct:/a\n5:memory:/a:b\n0::/\n",
			"sys/fs/cgroup/memory/a:b/memory.limit_in_bytes": "6000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		}, 6000},
		"version 1, no limit": {math.MaxInt64, map[string]string{
			"proc/self/cgroup":                           "5:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 2 << 30},
		"version 1 in a container, which has the path of the host": {math.MaxInt64, map[string]string{
			"proc/self/cgroup":                           "5:memory:/kubepods/pod1/c1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "8000\n",
		}, 8000},
		"both": {5000, map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "4000\n",
		}, 4000},
		"nonsense": {5000, map[string]string{"proc/self/cgroup": "\n:\n0::\nmemory:x:..\n"}, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(c.goMemLimit)
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := review.MemoryLimit(root); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// padded returns the question with so many bytes of padding.
func padded(size int) string {
	return strings.Replace(question, `"uid":`, `"padding":"`+strings.Repeat("x", size)+`","uid":`, 1)
}

// waiting returns a handler in a memory of 16 MiB. Its requests of more than 100 KiB wait: what the test
// sends to the channel that entered returns is let go.
func waiting() (h http.Handler, entered, leave chan struct{}) {
	entered, leave = make(chan struct{}), make(chan struct{})
	return withFailure(protocol(func(ctx context.Context, req *review.Request) ([]byte, error) {
		if len(req.Raw) > 100<<10 {
			entered <- struct{}{}
			<-leave
		}
		return []byte(`{}`), ctx.Err()
	})).HandlerIn(16 << 20), entered, leave
}

// A review that does not fit beside others gets a 503, which the API server repeats, although other failures
// are answered in the protocol. Small reviews are answered.
func TestMemory_LargeBesideLarge(t *testing.T) {
	h, entered, leave := waiting()
	const large = 1200 << 10 // nine times of this fit in seven eighths of the memory, but not twice
	first := make(chan int)
	go func() { first <- post(h, padded(large)).Code }()
	<-entered
	w := post(h, padded(large))
	if got := status(t, w); got.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(got.Message, "try again") {
		t.Errorf("another large one gets %+v, Retry-After %q", got, w.Header().Get("Retry-After"))
	}
	for range 10 {
		if w := post(h, question); w.Code != 200 {
			t.Errorf("a small one gets %d %s", w.Code, w.Body)
		}
	}
	leave <- struct{}{}
	if code := <-first; code != 200 {
		t.Errorf("the first gets %d", code)
	}
	// All of it has been given back.
	go func() { <-entered; leave <- struct{}{} }()
	if w := post(h, padded(large)); w.Code != 200 {
		t.Errorf("afterwards, a large one gets %d %s", w.Code, w.Body)
	}
}

// A review that never fits gets a 413, which the API server does not repeat.
func TestMemory_TooLarge(t *testing.T) {
	h, _, _ := waiting()
	for name, body := range map[string]string{
		"body":   strings.Repeat(" ", 17<<20),
		"text":   padded(3 << 20),
		"values": strings.Replace(question, "1.0", "["+strings.Repeat("{},", 100<<10)+"{}]", 1),
	} {
		w := post(h, body)
		if got := status(t, w); got.Code != 413 || !strings.Contains(got.Message, "may take") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Memory is given back after a panic, and after a body that ends too early.
func TestMemory_GivenBack(t *testing.T) {
	h := protocol(func(context.Context, *review.Request) ([]byte, error) { panic("dough everywhere") }).HandlerIn(16 << 20)
	for range 20 {
		if w := post(h, padded(1<<20)); w.Code != 500 {
			t.Fatalf("got %d %.200s", w.Code, w.Body)
		}
		if w := send(h, "/", io.LimitReader(strings.NewReader(padded(1<<20)), 1<<20), -1); w.Code != 400 {
			t.Fatalf("got %d %.200s", w.Code, w.Body)
		}
	}
}

// Content-Length takes no memory before a client has sent a part of so many bytes.
func TestMemory_PromisedBytes(t *testing.T) {
	h := protocol(nil).HandlerIn(16 << 20)
	for range 100 {
		body, client := io.Pipe()
		defer client.Close()
		go send(h, "/", body, 10<<20)
		_, _ = client.Write([]byte(question))
	}
	if w := post(h, padded(1<<20)); w.Code != 200 {
		t.Errorf("got %d %.200s", w.Code, w.Body)
	}
}

// A body of unknown length is read, however it arrives.
func TestMemory_UnknownLength(t *testing.T) {
	h := protocol(nil).HandlerIn(64 << 20)
	for _, size := range []int{0, 1, 4000, 4096, 5000, 100_000, 2 << 20} {
		for _, length := range []int64{-1, 0, 10, int64(size), int64(size) + 1000} {
			w := send(h, "/", io.MultiReader(strings.NewReader(padded(size)[:50]), strings.NewReader(padded(size)[50:])), length)
			if w.Code != 200 || !strings.Contains(w.Body.String(), strings.Repeat("x", size)) {
				t.Errorf("%d bytes, Content-Length %d: got %d %.200s", size, length, w.Code, w.Body)
			}
		}
	}
}

// The client of the API server, with which it calls a webhook, repeats what was refused.
func TestMemory_ClientTriesAgain(t *testing.T) {
	h, entered, leave := waiting()
	server := httptest.NewServer(h)
	defer server.Close()
	const large = 1200 << 10
	go post(h, padded(large))
	<-entered
	client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
		ContentType: "application/json", GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}})
	expect.NoError(t, err)
	go func() {
		time.Sleep(300 * time.Millisecond)
		leave <- struct{}{}
		<-entered
		leave <- struct{}{}
	}()
	begin := time.Now()
	got, err := client.Post().AbsPath("/").SetHeader("Content-Type", "application/json").Body([]byte(padded(large))).DoRaw(t.Context())
	var answer metav1.TypeMeta
	if err != nil || json.Unmarshal(got, &answer) != nil || answer.Kind != "TestReview" || time.Since(begin) < time.Second {
		t.Errorf("got %.200s, %v, after %s", got, err, time.Since(begin))
	}
}

// A client that is refused reads why, although it was still sending, and the log has a line for all of them
// in one second.
func TestMemory_RefusedWhileSending(t *testing.T) {
	var lines atomic.Int64
	logger := funcr.New(func(_, args string) {
		if lines.Add(1); !strings.Contains(args, "try again") {
			t.Errorf("logged %s", args)
		}
	}, funcr.Options{})
	h, entered, leave := waiting()
	server := httptest.NewUnstartedServer(h)
	server.Config.BaseContext = func(net.Listener) context.Context { return klog.NewContext(t.Context(), logger) }
	server.Start()
	defer server.Close()
	go post(h, padded(1200<<10))
	<-entered
	begin := time.Now()
	const times = 20
	for range times {
		resp, err := http.Post(server.URL, "application/json", strings.NewReader(strings.Repeat(" ", 12<<20)))
		expect.NoError(t, err)
		if resp.Body.Close(); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("got %s", resp.Status)
		}
	}
	leave <- struct{}{}
	if got, most := lines.Load(), int64(time.Since(begin).Seconds())+2; got == 0 || got > most {
		t.Errorf("%d lines for %d refusals in %s", got, times, time.Since(begin))
	}
}
