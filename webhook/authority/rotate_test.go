package authority

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// named gives CAs the names by which a test speaks of them.
type named map[string]*ca

func (n named) cert(c *x509.Certificate) string {
	for name, ca := range n {
		if ca.cert.Equal(c) {
			return name
		}
	}
	return "a new one"
}

// say returns what a state is, such as "current a, next b, previous c d".
func (n named) say(s *state) string {
	text := "current " + n.cert(s.current.cert)
	if s.next != nil {
		text += ", next " + n.cert(s.next.cert)
	}
	if len(s.previous) > 0 {
		text += ", previous"
		for _, cert := range s.previous {
			text += " " + n.cert(cert)
		}
	}
	return text
}

func certs(cas ...*ca) (certs []*x509.Certificate) {
	for _, c := range cas {
		certs = append(certs, c.cert)
	}
	return certs
}

// A state is followed by the one that is due.
func TestState_NextThatIsDue(t *testing.T) {
	now := time.Now()
	p := &Authority{name: "ca", caLifetime: 90 * day, rotateAfter: 30 * day}
	n := named{
		"young": makeCA(t, now, 90*day), "fresh": makeCA(t, now.Add(-day), 90*day), "aged": makeCA(t, now.Add(-31*day), 90*day),
		"expired": makeCA(t, now.Add(-91*day), 90*day), "gone": makeCA(t, now.Add(-92*day), 90*day), "future": makeCA(t, now.Add(2*day), 90*day),
		"short": makeCA(t, now.Add(-31*time.Minute), time.Hour),
	}
	for name, test := range map[string]struct {
		s     state
		ready bool
		want  string // empty: the same
	}{
		"nothing is due":                  {s: state{current: n["fresh"], previous: certs(n["aged"])}},
		"the next one is not ready":       {s: state{current: n["aged"], next: n["young"]}},
		"the next one is ready":           {s: state{current: n["aged"], next: n["young"], previous: certs(n["fresh"])}, ready: true, want: "current young, previous fresh aged"},
		"a CA is of an age":               {s: state{current: n["aged"], previous: certs(n["fresh"])}, want: "current aged, next a new one, previous fresh"},
		"a CA is of half its life":        {s: state{current: n["short"]}, want: "current short, next a new one"},
		"the current one has expired":     {s: state{current: n["expired"], next: n["young"]}, want: "current young"},
		"it is of the future":             {s: state{current: n["future"], next: n["young"]}, want: "current young, previous future"},
		"all have expired":                {s: state{current: n["expired"], next: n["gone"], previous: certs(n["gone"])}, want: "current a new one"},
		"the next one has expired":        {s: state{current: n["fresh"], next: n["expired"]}, want: "current fresh"},
		"the next one is of the future":   {s: state{current: n["fresh"], next: n["future"]}, ready: true, want: "current fresh"},
		"it has, and another is due":      {s: state{current: n["aged"], next: n["expired"]}, want: "current aged, next a new one"},
		"a previous one has expired":      {s: state{current: n["fresh"], previous: certs(n["gone"], n["aged"])}, want: "current fresh, previous aged"},
		"a previous one is of the future": {s: state{current: n["fresh"], previous: certs(n["future"])}},
	} {
		t.Run(name, func(t *testing.T) {
			before := n.say(&test.s)
			got, err := p.step(&test.s, now, test.ready)
			expect.NoError(t, err)
			if test.want == "" && got != &test.s {
				t.Fatalf("it has become %s", n.say(got))
			}
			if diff := cmp.Diff(test.want, n.say(got)); test.want != "" && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, n.say(&test.s)); diff != "" {
				t.Errorf("the argument has changed (-before +after):\n%s", diff)
			}
			if got.next != nil && got.next != test.s.next && (got.next.cross == nil || got.next.cross.CheckSignatureFrom(got.current.cert) != nil) {
				t.Error("the current one does not vouch for the next one")
			}
		})
	}
}

// Two states become one that surprises no replica.
func TestState_Merge(t *testing.T) {
	now := time.Now()
	n := named{"a": makeCA(t, now, day), "b": makeCA(t, now, day), "c": makeCA(t, now, day), "d": makeCA(t, now, day), "expired": makeCA(t, now.Add(-2*day), day)}
	s := func(current, next string, previous ...string) *state {
		s := &state{current: n[current], next: n[next]}
		for _, name := range previous {
			s.retire(n[name].cert)
		}
		return s
	}
	for name, test := range map[string]struct {
		mine, theirs *state
		want         string
	}{
		"it knows nothing":                 {nil, s("a", "b"), "current a, next b"},
		"they are the same":                {s("a", ""), s("a", ""), "current a"},
		"a next one was added":             {s("a", ""), s("a", "b"), "current a, next b"},
		"the next one took over":           {s("a", "b"), s("b", "", "a"), "current b, previous a"},
		"that went unnoticed":              {s("a", ""), s("b", "", "a"), "current b, previous a"},
		"an old one came back":             {s("b", "", "a"), s("a", ""), "current b, previous a"},
		"an old one whose next is current": {s("b", "c", "a"), s("a", "b"), "current a, next b"},
		"what it had has expired":          {s("expired", ""), s("a", ""), "current a"},
		"what came has expired":            {s("a", ""), s("expired", ""), "current a"},
		"both have":                        {s("expired", ""), s("expired", ""), "current expired"},
		"somebody else's":                  {s("a", ""), s("c", ""), "current a, next c"},
		"and there was a next one":         {s("a", "b"), s("c", ""), "current a, next c, previous b"},
		"and previous ones":                {s("a", "", "b"), s("c", "", "d"), "current a, next c, previous b d"},
		"its next one is forgotten":        {s("a", ""), s("c", "d"), "current a, next c"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reconciled(test.mine, test.theirs, now)
			expect.NoError(t, err)
			if diff := cmp.Diff(test.want, n.say(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A CA is followed at half its life at the latest, whoever made it.
func TestPolicy_Renewal(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	p := &Authority{rotateAfter: 30 * day}
	for name, test := range map[string]struct {
		from, to time.Duration
		want     time.Duration
	}{
		"ours":                   {-skew, 90 * day, 30 * day},
		"ours, and short":        {-skew, time.Minute, 30 * time.Second},
		"theirs":                 {0, 365 * day, 30*day + skew},
		"theirs, and very short": {0, 30 * time.Minute, 15 * time.Minute},
	} {
		c := &ca{cert: &x509.Certificate{NotBefore: now.Add(test.from), NotAfter: now.Add(test.to)}}
		if got := p.renewal(c).Sub(now); got != test.want {
			t.Errorf("%s: after %s, not %s", name, got, test.want)
		}
	}
}

// A cross certificate lives no longer than either CA.
func TestCrossCertificate_Lifetime(t *testing.T) {
	now := time.Now()
	for _, test := range []struct{ issuer, next time.Duration }{{time.Hour, day}, {day, time.Hour}} {
		issuer, next := makeCA(t, now, test.issuer), makeCA(t, now, test.next)
		crossed, err := issuer.crossed(next)
		expect.NoError(t, err)
		if want := earlier(issuer.cert.NotAfter, next.cert.NotAfter); !crossed.cross.NotAfter.Equal(want) {
			t.Errorf("it is valid to %s, not %s", crossed.cross.NotAfter, want)
		}
		for at, want := range map[time.Duration]int{0: 2, 2 * time.Hour: 1} {
			leaf, err := crossed.leaf([]string{"h"}, now.Add(at), time.Minute)
			expect.NoError(t, err)
			if got := len(leaf.Certificate); got != want {
				t.Errorf("after %s the chain has %d certificates, not %d", at, got, want)
			}
		}
	}
}

func TestLeaf_AllHosts(t *testing.T) {
	long := "a-service-with-a-name-that-is-quite-long.in-a-namespace-that-has-one-too.svc"
	for _, hosts := range [][]string{{"pizza.ns.svc", "10.0.0.1", "::1", "other"}, {long, "h"}} {
		c := makeCA(t, time.Now(), day)
		leaf, err := c.leaf(hosts, time.Now(), time.Hour)
		expect.NoError(t, err)
		for _, host := range hosts {
			expect.NoError(t, leaf.Leaf.VerifyHostname(host))
		}
		if diff := cmp.Diff([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, leaf.Leaf.ExtKeyUsage); diff != "" {
			t.Errorf("it may be used for (-want +got):\n%s", diff)
		}
	}
}
