package authority

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// FuzzParseState reads what can be in a Secret, as the API server gives it: a JSON object of
// base64. A parsed state must encode to one that parses to the same.
func FuzzParseState(f *testing.F) {
	s := makeState(f, time.Now(), 2)
	next, err := s.current.crossed(makeCA(f, time.Now(), day))
	expect.NoError(f, err)
	whole := encoded(f, &state{current: next, next: s.current, previous: s.previous})
	for _, key := range append(keys[:], "") {
		for _, value := range [][]byte{nil, []byte("garbage"), whole[certKey]} {
			data := maps.Clone(whole)
			data[key] = value
			text, err := json.Marshal(data)
			expect.NoError(f, err)
			f.Add(text)
		}
	}
	f.Add([]byte(`{"tls.crt":"","tls.key":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var data map[string][]byte
		if json.Unmarshal(text, &data) != nil {
			return
		}
		s, err := parseState(data)
		if s == nil {
			t.Fatal("there is no state")
		}
		if err != nil {
			return
		}
		again, err := parseState(encoded(t, s))
		expect.NoError(t, err)
		if diff := cmp.Diff(encodedText(t, s), encodedText(t, again)); diff != "" {
			t.Errorf("it parses to another state (-first +second):\n%s", diff)
		}
	})
}

func encodedText(t *testing.T, s *state) map[string]string { return text(encoded(t, s)) }

func TestParseState_NamesEachBrokenKey(t *testing.T) {
	_, err := parseState(map[string][]byte{certKey: []byte("?"), nextKeyKey: []byte("?"), previousKey: []byte("?")})
	expect.ErrorContains(t, err, "tls.crt and tls.key: ", "next.crt and next.key: ", "previous.crt: ")
}

func TestBundle_DoesNotDependOnUse(t *testing.T) {
	now := time.Now()
	s := makeState(t, now, 1)
	next := makeCA(t, now.Add(time.Minute), day)
	a := &state{current: s.current, next: next, previous: s.previous}
	b := &state{current: next, previous: append(s.previous, s.current.cert, s.current.cert)}
	if diff := cmp.Diff(string(a.bundle()), string(b.bundle())); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// BenchmarkLook measures what an idle replica does each interval.
func BenchmarkLook(b *testing.B) {
	c := newCluster()
	c.latency = func() time.Duration { return 0 }
	s := makeState(b, time.Now(), 1)
	c.put(encoded(b, s))
	a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"})
	expect.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.sync(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if c.written() != 0 {
		b.Fatal("it writes")
	}
}

// BenchmarkGetCertificate measures what a handshake asks for.
func BenchmarkGetCertificate(b *testing.B) {
	c := newCluster()
	c.put(encoded(b, makeState(b, time.Now(), 0)))
	a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"})
	expect.NoError(b, err)
	_, err = a.sync(b.Context())
	expect.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.GetCertificate(nil); err != nil {
			b.Fatal(err)
		}
	}
}
