package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// cluster is an API server that has one Secret, in memory, for tests in a bubble of
// testing/synctest: there a network cannot be.
type cluster struct {
	mu       sync.Mutex
	offset   time.Duration // of its clock
	version  int
	data     map[string][]byte // nil: there is no Secret
	watchers map[int]io.Writer
	fault    func(r *http.Request) int // an HTTP status, 0 for none
	latency  func() time.Duration
	writes   int
}

func newCluster() *cluster {
	return &cluster{watchers: map[int]io.Writer{}, latency: func() time.Duration { return time.Millisecond }}
}

func (c *cluster) now() time.Time { return time.Now().Add(c.offset) }

// config is a configuration for it.
func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: "https://cluster", Transport: roundTripper(c.roundTrip)}
}

func (c *cluster) roundTrip(r *http.Request) (*http.Response, error) {
	if err := sleep(r.Context(), c.latency()); err != nil {
		return nil, err
	}
	if r.URL.Query().Get("watch") == "true" {
		return c.watch(r), nil
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		if code := c.fault(r); code != 0 {
			return c.answer(r, code, status(code)), nil
		}
	}
	var sent struct {
		Metadata struct{ ResourceVersion string }
		Data     map[string][]byte
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Method == http.MethodPost && c.data != nil:
		return c.answer(r, 409, `{"kind":"Status","apiVersion":"v1","code":409,"status":"Failure","reason":"AlreadyExists"}`), nil
	case r.Method != http.MethodPost && c.data == nil:
		return c.answer(r, 404, status(404)), nil
	case r.Method == http.MethodPut && sent.Metadata.ResourceVersion != strconv.Itoa(c.version):
		return c.answer(r, 409, status(409)), nil
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		c.writes++
		c.set(sent.Data)
	}
	return c.answer(r, 200, c.text()), nil
}

// set replaces the Secret. The caller holds the lock.
func (c *cluster) set(data map[string][]byte) {
	kind := map[[2]bool]string{{false, true}: "ADDED", {true, true}: "MODIFIED", {true, false}: "DELETED"}[[2]bool{c.data != nil, data != nil}]
	old := c.text()
	c.data = data
	c.version++
	if kind == "DELETED" {
		c.tell(kind, old)
	} else if kind != "" {
		c.tell(kind, c.text())
	}
}

func (c *cluster) tell(kind, text string) {
	for _, w := range c.watchers {
		go fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, text)
	}
}

func (c *cluster) text() string {
	data, err := json.Marshal(c.data)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","type":"kubernetes.io/tls","metadata":{"name":"ca","namespace":"ns","resourceVersion":"%d"},"data":%s}`, c.version, data)
}

func (c *cluster) watch(r *http.Request) *http.Response {
	read, write := io.Pipe()
	c.mu.Lock()
	id := c.version*1000 + len(c.watchers)
	for c.watchers[id] != nil {
		id++
	}
	c.watchers[id] = write
	c.mu.Unlock()
	context.AfterFunc(r.Context(), func() {
		c.mu.Lock()
		delete(c.watchers, id)
		c.mu.Unlock()
		write.CloseWithError(io.EOF)
	})
	resp := c.answer(r, 200, "")
	resp.Body = read
	return resp
}

func (c *cluster) answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code), Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {c.now().UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(strings.NewReader(body)),
	}
}

func status(code int) string {
	reason := map[int]string{403: "Forbidden", 404: "NotFound", 409: "Conflict", 500: "InternalError"}[code]
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"the cluster says %d"}`, code, reason, code)
}

// edit changes the Secret behind everybody's back; nil deletes it.
func (c *cluster) edit(f func(data map[string][]byte) map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data := f(maps.Clone(c.data))
	if data == nil && c.data == nil {
		return
	}
	c.set(data)
}

// state is what is in the Secret.
func (c *cluster) state(t testing.TB) *state {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := parseState(c.data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(c.data[bundleKey], s.bundle()) {
		t.Fatalf("%s is not the bundle", bundleKey)
	}
	return s
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
