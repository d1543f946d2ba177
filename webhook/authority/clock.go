package authority

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock tells the API server's time. The API server is who verifies the certificates, and
// all replicas ask it: so a pod's own clock may be wrong without harm.
type clock struct {
	offset atomic.Int64 // of the API server's clock to this one
}

// tolerance is the difference of clocks that is ignored: an HTTP date has whole seconds, and
// takes a while to arrive.
const tolerance = 5 * time.Second

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// observe returns a transport that reads the time in the answers of another (RFC 9110,
// 6.6.1).
func (c *clock) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			c.set(time.Until(date))
		}
		return resp, nil
	})
}

func (c *clock) set(offset time.Duration) {
	if (offset - time.Duration(c.offset.Load())).Abs() < tolerance {
		return
	}
	if offset.Abs() < tolerance {
		offset = 0
	}
	c.offset.Store(int64(offset))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
