package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Small is the size of a body up to which a review is parsed as a whole, and up to which the next review, of
// any size, uses its buffer and that of its answer again.
const Small = 256 << 10

// memory bounds the memory of all reviews in progress, in bytes.
type memory struct {
	max    int64
	taken  atomic.Int64
	logged atomic.Int64 // when a refusal was, in seconds since 1970
}

// process is the memory of all handlers, whichever server they are mounted on. It is as global
// as the limit of the process that it divides.
//
// Go's garbage collector does not know the limit of a cgroup, and lets garbage grow beyond it. So it is told,
// unless GOMEMLIMIT or the program has set a limit.
var process = sync.OnceValue(func() *memory {
	limit := memoryLimit(os.DirFS("/"))
	if limit != noLimit && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
	return newMemory(limit)
})

// noLimit is what a process without a memory limit is given.
const noLimit = 2 << 30

// newMemory returns the share of reviews in the memory limit of a process: a quarter of what it has beside
// the 32 MiB that it takes anyway. With the default GOGC, the heap grows to twice of what is live, and not
// only reviews are.
func newMemory(limit int64) *memory { return &memory{max: max(4<<20, (limit-32<<20)/4)} }

// memoryLimit returns the memory limit of the process in bytes: GOMEMLIMIT, or that of its cgroup
// and of those around it, whichever is lower. It is 2 GiB if there is none.
func memoryLimit(root fs.FS) int64 {
	limit := debug.SetMemoryLimit(-1)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // which other systems do not have
	for line := range strings.Lines(string(groups)) {
		// For example 0::/kubepods/pod1 in version 2, and 4:memory:/kubepods/pod1 in version 1.
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, dir, _ := strings.Cut(line, ":")
		mount, file := "sys/fs/cgroup", "memory.max"
		if controllers == "memory" {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if controllers != "" {
			continue
		}
		// In a container, dir may be that of the host, and the container's own is the mount.
		for ; ; dir = path.Dir(dir) {
			text, _ := fs.ReadFile(root, path.Join(mount, dir, file))
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil {
				limit = min(limit, n)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	if limit > math.MaxInt64/2 { // as version 1 says without a limit
		return noLimit
	}
	return limit
}

// worthLine reports whether a refusal is worth a line in the log: one a second, however many there are.
func (m *memory) worthLine() bool {
	now, last := time.Now().Unix(), m.logged.Load()
	return now != last && m.logged.CompareAndSwap(last, now)
}

// account is the memory that one review has taken.
type account struct {
	memory *memory
	size   atomic.Int64
}

// Take takes n more bytes for the review, until it has been answered. If there is less, the review
// must be answered with the error. The API server repeats the review later if it can ever succeed.
//
// An eighth of the memory is for reviews that need at most 1 MiB, and are answered beside large ones.
func (a *account) Take(n int) error {
	limit, size := a.memory.max, a.size.Add(int64(n))
	if size > 1<<20 {
		limit -= limit / 8
	}
	if a.memory.taken.Add(int64(n)) <= limit {
		return nil
	}
	a.give(int64(n))
	if size > limit {
		return tooLarge(size, limit)
	}
	err := apierrors.NewServiceUnavailable(fmt.Sprintf("the reviews in progress take the %d MiB of memory that are for reviews: try again", a.memory.max>>20))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return refusal{err}
}

// patience is how long a small review waits for memory after it was read. Mostly, reviews that end in a
// few milliseconds hold it, and the API server would come back only after a second.
const patience = 2 * time.Second

// takeSoon is like Take, but waits for memory that other reviews hold.
func (a *account) takeSoon(ctx context.Context, n int) error {
	for begin := time.Now(); ; {
		err := a.Take(n)
		if !apierrors.IsServiceUnavailable(err) || time.Since(begin) > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TakeIfRoom takes n more bytes if there are spare ones beside them, and reports whether it did.
func (a *account) TakeIfRoom(n, spare int) bool {
	if a.Take(n+spare) != nil {
		return false
	}
	a.give(int64(spare))
	return true
}

func (a *account) give(n int64) {
	a.size.Add(-n)
	a.memory.taken.Add(-n)
}

// refusal is an error of Take.
type refusal struct{ *apierrors.StatusError }

// Refused reports whether an error says that there is too little memory for a review.
func Refused(err error) bool {
	_, refused := errors.AsType[refusal](err)
	return refused
}

func tooLarge(size, limit int64) error {
	return refusal{status(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		"the review takes at least %d MiB of memory, and may take %d MiB, a share of the memory limit of the webhook's process", size>>20, limit>>20)}
}

// grow allocates a larger buffer for the body. A client may promise much and send little, so that the buffer
// is at most sixteen times as large as the part that has arrived, and 32 KiB.
func (req *Request) grow(contentLength int64) error {
	size := 2*len(req.body) + 4<<10
	if rest := contentLength - int64(len(req.body)); rest >= 0 {
		size = 8*len(req.body) + 16<<10
		if whole := len(req.body) + int(rest) + bytes.MinRead; whole < 2*size { // rather than copy it once more
			size = whole
		}
	}
	var body []byte
	if size > Small {
		body = req.protocol.bodies.get(size)
		size = max(size, cap(body))
	}
	if err := req.Take(size); err != nil {
		return err
	}
	req.give(int64(cap(req.body))) // once it has been copied
	if body == nil {
		body = make([]byte, 0, size)
	}
	req.body = append(body, req.body...)
	return nil
}

// buffers are those of large reviews, which later ones use again. The garbage collector frees the others.
type buffers struct{ pool sync.Pool }

// maxBuffer is the capacity up to which buffers are kept, because what is kept is not in the account of a review.
const maxBuffer = 4 << 20

// get returns an empty buffer with room for n bytes, or nil. It drops a buffer that is too small or much too large.
func (b *buffers) get(n int) []byte {
	buffer, _ := b.pool.Get().(*[]byte)
	if buffer == nil || cap(*buffer) < n || cap(*buffer) > max(2*n, Small+Small/4) {
		return nil
	}
	return (*buffer)[:0]
}

func (b *buffers) put(buffer []byte) {
	if cap(buffer) <= maxBuffer {
		b.pool.Put(&buffer)
	}
}

// Cost returns how much memory it takes to decode, change and encode JSON text. Each object and list
// in it takes 512 bytes beside its text, and each of their values 64. Ordinary objects take less, and empty
// ones in a list of large Go structs more.
func Cost(text []byte) int {
	nested := bytes.Count(text, []byte{'{'}) + bytes.Count(text, []byte{'['})
	return 8*len(text) + 512*nested + 64*bytes.Count(text, []byte{','})
}
