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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
)

// cluster is an API server that has one Secret, in memory, for tests in a bubble of
// testing/synctest: there a network cannot be.
type cluster struct {
	mu        sync.Mutex
	version   int
	data      map[string][]byte // nil: there is no Secret
	kind      string            // its type
	meta      map[string]any    // its labels and annotations
	immutable bool
	room      int // bytes of its data at most
	watches   int // ever
	watchers  map[int]*io.PipeWriter
	fault     func(r *http.Request) int  // an HTTP status, 0 for none
	lost      func(r *http.Request) bool // the request is carried out, the answer does not arrive
	latency   func() time.Duration
	behind    time.Duration // its clock
	reads     int
	writes    int
	events    []corev1.Event
}

func newCluster() *cluster {
	return &cluster{room: 1 << 20, watchers: map[int]*io.PipeWriter{}, latency: func() time.Duration { return time.Millisecond }}
}

// config is a configuration for it.
func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: "https://cluster", Transport: roundTripper(c.roundTrip)}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (c *cluster) roundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	c.mu.Lock()
	latency := c.latency()
	c.mu.Unlock()
	gone := sleep(r.Context(), latency)
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/events") && gone == nil {
		return c.create(r, body)
	}
	lost := c.lost != nil && c.lost(r)
	if gone != nil && !lost {
		return nil, gone
	}
	resp, err := c.serve(r, body)
	if lost && r.URL.Query().Get("watch") == "" {
		return nil, io.ErrUnexpectedEOF
	}
	if gone != nil {
		return nil, gone
	}
	return resp, err
}

// create creates an Event.
func (c *cluster) create(r *http.Request, body []byte) (*http.Response, error) {
	if c.fault != nil {
		if code := c.fault(r); code != 0 {
			return c.answer(r, code, status(code)), nil
		}
	}
	var event corev1.Event
	if err := json.Unmarshal(body, &event); err != nil {
		return nil, err
	}
	c.events = append(c.events, event)
	return c.answer(r, 201, string(body)), nil
}

func (c *cluster) serve(r *http.Request, body []byte) (*http.Response, error) {
	if c.fault != nil {
		if code := c.fault(r); code != 0 {
			return c.answer(r, code, status(code)), nil
		}
	}
	if r.URL.Query().Get("watch") == "true" {
		return c.watch(r), nil
	}
	var sent struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]any
		}
		Type      string
		Immutable bool
		Data      map[string][]byte
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
	}
	size := 0
	for _, value := range sent.Data {
		size += len(value)
	}
	switch {
	case r.Method == http.MethodPost && c.data != nil:
		return c.answer(r, 409, `{"kind":"Status","apiVersion":"v1","code":409,"status":"Failure","reason":"AlreadyExists"}`), nil
	case r.Method != http.MethodPost && c.data == nil:
		return c.answer(r, 404, status(404)), nil
	case r.Method == http.MethodPut && sent.Metadata.ResourceVersion != strconv.Itoa(c.version):
		return c.answer(r, 409, status(409)), nil
	case r.Method == http.MethodPut && c.immutable, size > c.room:
		return c.answer(r, 422, status(422)), nil
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		c.writes++
		c.kind, c.meta = sent.Type, map[string]any{}
		if sent.Metadata.Labels != nil {
			c.meta["labels"] = sent.Metadata.Labels
		}
		if sent.Metadata.Annotations != nil {
			c.meta["annotations"] = sent.Metadata.Annotations
		}
		c.set(sent.Data)
	default:
		c.reads++
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
		c.kind, c.meta, c.immutable = "kubernetes.io/tls", nil, false
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
	meta := maps.Clone(c.meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"], meta["uid"], meta["resourceVersion"] = "ca", "ns", "the-uid", strconv.Itoa(c.version)
	obj := map[string]any{"kind": "Secret", "apiVersion": "v1", "type": c.kind, "metadata": meta, "data": c.data}
	if c.immutable {
		obj["immutable"] = true
	}
	text, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (c *cluster) watch(r *http.Request) *http.Response {
	read, write := io.Pipe()
	c.watches++
	id := c.watches
	c.watchers[id] = write
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

// endWatches is what the API server does to watches after a while, and when it restarts.
func (c *cluster) endWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.watchers {
		delete(c.watchers, id)
		w.CloseWithError(io.EOF)
	}
}

func (c *cluster) answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code), Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().Add(-c.behind).UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(strings.NewReader(body)),
	}
}

func status(code int) string {
	reason := map[int]string{403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid", 500: "InternalError"}[code]
	message := fmt.Sprintf("the cluster says %d", code)
	if code == 403 {
		message = `secrets "ca" is forbidden: User "pizza" cannot do that`
	}
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}

// faulty makes the API server answer with faults; nil ends it.
func (c *cluster) faulty(fault func(*http.Request) int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// away makes each request fail; the watches end.
func (c *cluster) away() {
	c.faulty(func(*http.Request) int { return 500 })
	c.endWatches()
}

// edit changes the Secret behind everybody's back; nil deletes it.
func (c *cluster) edit(f func(data map[string][]byte) map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data := f(maps.Clone(c.data))
	if data == nil && c.data == nil {
		return
	}
	if c.kind == "" {
		c.kind = "kubernetes.io/tls"
	}
	c.set(data)
}

// write writes a value of the Secret behind everybody's back; nil removes it.
func (c *cluster) write(key string, value []byte) {
	c.edit(func(data map[string][]byte) map[string][]byte {
		delete(data, key)
		if value != nil {
			data[key] = value
		}
		return data
	})
}

// change changes the cluster itself.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cluster) delete() { c.edit(func(map[string][]byte) map[string][]byte { return nil }) }

// put replaces the data.
func (c *cluster) put(data map[string][]byte) {
	c.edit(func(map[string][]byte) map[string][]byte { return maps.Clone(data) })
}

// snapshot returns the data.
func (c *cluster) snapshot() map[string][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.data)
}

func (c *cluster) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// state is what is in the Secret.
func (c *cluster) state(t testing.TB) *state {
	t.Helper()
	data := c.snapshot()
	s, err := parseState(data)
	expect.NoError(t, err)
	if !bytes.Equal(data[bundleKey], s.bundle()) {
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
