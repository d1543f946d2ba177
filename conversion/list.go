package conversion

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
)

const (
	fewObjects = 4        // are not worth a second worker
	chunkBytes = 16 << 10 // of a long list are what a worker takes at a time
)

// list is the objects of a request.
type list struct {
	task
	cursor *rawjson.Cursor
	done   converted // what comes before the cursor
}

// task is what to do with objects.
type task struct {
	*handler
	to schema.GroupVersion
}

// converted is what has become of some objects in a row.
type converted struct {
	text  []byte // joined by commas
	n     int
	ended bool   // they are the last of the list
	err   error  // of the object after them
	how   string // it is told, with the index of the object
	seen  Observation
}

// convertList appends all objects of a list to b, converted. The error is that of the
// first object that fails.
func (h *handler) convertList(ctx context.Context, c *rawjson.Cursor, to schema.GroupVersion, b []byte) ([]byte, Observation, error) {
	if c == nil {
		return b, Observation{}, nil
	}
	w := h.registry.newWorker()
	defer h.registry.release(w)
	l := &w.list
	l.handler, l.to, l.cursor, l.done.text = h, to, c, b
	defer l.clear()
	if h.parallel > 1 {
		l.convert(ctx, w, c, &l.done, fewObjects, noEnd)
		l.convertChunks(ctx, w)
	}
	l.convert(ctx, w, c, &l.done, noEnd, noEnd)
	if l.done.err == nil {
		return l.done.text, l.done.seen, nil
	}
	err := fmt.Errorf(l.done.how, l.done.n, l.done.err)
	if c.Err() != nil {
		err = apierrors.NewBadRequest(err.Error())
	}
	return nil, Observation{Failed: l.done.seen.Failed}, err
}

func (l *list) clear() { *l = list{} }

const noEnd = math.MaxInt

// convert converts the objects at a cursor, until there are n of them, or the cursor is
// at an offset, or the list ends, or one fails.
func (t task) convert(ctx context.Context, w *worker, c *rawjson.Cursor, into *converted, n, offset int) {
	fail := func(how string, err error) { into.how, into.err = how, err }
	for into.n < n && c.Offset() < offset && !into.ended && into.err == nil {
		if into.ended = !c.Next(); into.ended {
			if err := c.Err(); err != nil {
				fail("request.objects[%d]: %w", err)
			}
			break
		}
		if err := ctx.Err(); err != nil {
			fail("stopped at request.objects[%d]: %w", err)
			break
		}
		text := into.text
		if into.n > 0 {
			text = append(text, ',')
		}
		text, err := w.convert(ctx, text, c, t.to)
		if err != nil {
			fail("request.objects[%d]: %w", err)
			into.seen.Failed = w.known()
			break
		}
		into.text = text
		into.n++
		c.SkipSpace() // to where the next chunk would begin
		if t.observe != nil {
			into.seen.count(w.known())
		}
	}
}

// chunk is some objects in the middle of a list.
type chunk struct {
	begin, end int // offsets: behind the object before the first, and behind the last
	cursor     rawjson.Cursor
	converted
}

// convertChunks converts a long list with several workers, each another chunk at a
// time.
//
// Where a chunk begins is a guess: only who has read everything before it knows where
// an object begins. But that is what happens: if the objects before it end there, the
// guess was right. Otherwise what has become of the chunk is forgotten.
func (l *list) convertChunks(ctx context.Context, w *worker) {
	if l.done.ended || l.done.err != nil {
		return
	}
	chunks := l.chunks(w.source)
	if len(chunks) < 2 {
		return
	}
	var taken, failed atomic.Int64
	failed.Store(int64(len(chunks)))
	task := l.task // a copy: what one worker writes to should not be near what others read
	work := func() {
		w := task.registry.newWorker() // not ours: a wrong guess may break it
		defer task.registry.release(w)
		for {
			i := taken.Add(1) - 1
			if i >= failed.Load() {
				return
			}
			c := chunks[i]
			task.convert(ctx, w, &c.cursor, &c.converted, noEnd, c.end)
			if c.err != nil {
				failed.Store(min(i, failed.Load())) // if another one gets in between, more is done than is needed
			}
		}
	}
	var wg sync.WaitGroup
	for range min(l.parallel, len(chunks)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for _, c := range chunks {
		// Up to where the chunk begins, if a guess before was wrong; or beyond.
		l.convert(ctx, w, l.cursor, &l.done, noEnd, c.begin)
		if l.done.ended || l.done.err != nil {
			break
		}
		if l.cursor.Offset() == c.begin {
			l.done.append(&c.converted)
			*l.cursor = c.cursor
		}
		c.release(l.registry)
	}
}

// chunks cuts the rest of the list, where there seem to begin objects that look like
// the sample.
func (l *list) chunks(sample []byte) []*chunk {
	head := bytes.Index(sample, []byte(`"metadata"`))
	if head < 0 || head > 1000 {
		head = min(len(sample), 24)
	}
	begin := append([]byte{','}, sample[:head]...)
	at, rest := l.cursor.Offset(), l.cursor.Rest()
	chunks := []*chunk{l.newChunk(at)}
	for i := chunkBytes; i+len(begin) < len(rest); i += chunkBytes {
		// Each chunk begins in its own stretch, or not at all: no stretch is searched twice.
		if j := bytes.Index(rest[i:min(i+chunkBytes, len(rest))], begin); j >= 0 {
			chunks[len(chunks)-1].end = at + i + j
			chunks = append(chunks, l.newChunk(at+i+j))
		}
	}
	return chunks
}

func (l *list) newChunk(begin int) *chunk {
	c, _ := l.registry.chunks.Get().(*chunk)
	if c == nil {
		c = &chunk{}
	}
	*c = chunk{begin: begin, end: noEnd, cursor: l.cursor.At(begin), converted: converted{text: c.text[:0]}}
	return c
}

// release gives a chunk back, for its memory.
func (c *chunk) release(r *Registry) {
	if cap(c.text) <= 8*chunkBytes { // one enormous object must not stay for ever
		c.cursor = rawjson.Cursor{}
		r.chunks.Put(c)
	}
}

// append adds the objects that come next.
func (c *converted) append(next *converted) {
	if c.n > 0 && next.n > 0 {
		c.text = append(c.text, ',')
	}
	c.text = append(c.text, next.text...)
	c.n += next.n
	c.ended, c.err, c.how = next.ended, next.err, next.how
	c.seen.add(next.seen)
}
