package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

func TestCertificate_RenewedAtHalfItsLife(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c, Interval(time.Minute))
		first, _ := r.GetCertificate(nil)
		if got := time.Until(first.Leaf.NotAfter); got > day || got < day-2*start {
			t.Errorf("it is valid for %s", got)
		}
		time.Sleep(12*time.Hour - 2*time.Minute - 2*start)
		if same, _ := r.GetCertificate(nil); same != first {
			t.Error("it was renewed too early")
		}
		time.Sleep(4 * time.Minute)
		second, _ := r.GetCertificate(nil)
		if second == first {
			t.Error("it was not renewed")
		}
		if c.written() != 1 {
			t.Error("that changed the Secret")
		}
	})
}

func TestCertificate_NeverOutlivesItsCA(t *testing.T) {
	now := time.Now()
	young := makeCA(t, now, time.Hour)
	for lifetime, want := range map[time.Duration]time.Time{
		time.Minute: now.Add(time.Minute),
		day:         young.cert.NotAfter,
	} {
		leaf, err := young.leaf([]string{"h"}, now, lifetime)
		expect.NoError(t, err)
		if got := leaf.Leaf.NotAfter; !got.Equal(want.UTC().Truncate(time.Second)) {
			t.Errorf("%s: it is valid to %s, not %s", lifetime, got, want)
		}
		if !leaf.Leaf.NotBefore.Equal(young.cert.NotBefore) {
			t.Errorf("it is valid from %s", leaf.Leaf.NotBefore)
		}
	}
	for _, after := range []time.Duration{30 * time.Minute, -30 * time.Minute} {
		leaf, err := young.leaf([]string{"h"}, now.Add(after), time.Minute)
		expect.NoError(t, err)
		if got := leaf.Leaf.NotBefore; !got.Equal(young.cert.NotBefore) {
			t.Errorf("after %s, it is valid from %s, its CA from %s", after, got, young.cert.NotBefore)
		}
	}
}

// The CA rotates at its age.
func TestRotation_AtAge(t *testing.T) {
	for name, test := range map[string]struct {
		opts []Option
		age  time.Duration
	}{
		"half its life":             {[]Option{CALifetime(10 * day)}, 5 * day},
		"the age that is asked for": {[]Option{CALifetime(10 * day), RotateAfter(2 * day)}, 2 * day},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				r := started(t, c, append(test.opts, Interval(time.Hour), CertificateLifetime(4*time.Hour), PropagationDelay(5*time.Hour))...)
				old := c.state(t)
				time.Sleep(test.age - 2*time.Hour)
				if c.state(t).next != nil || c.written() != 1 {
					t.Fatal("a next CA is there too early")
				}
				time.Sleep(4 * time.Hour)
				both := c.state(t)
				if both.next == nil || !both.current.cert.Equal(old.current.cert) {
					t.Fatal("there is no next CA")
				}
				r.wantsWell(t, c)
				time.Sleep(2 * time.Hour)
				if c.written() != 2 {
					t.Fatal("it has not waited for the registrations to settle")
				}
				time.Sleep(4 * time.Hour)
				promoted := c.state(t)
				if !promoted.current.cert.Equal(both.next.cert) || promoted.next != nil || c.written() != 3 {
					t.Fatal("the next CA has not taken over")
				}
				if !bytes.Equal(both.bundle(), promoted.bundle()) {
					t.Error("that has changed the bundle")
				}
				r.wantsWell(t, c)
				r.wantsIssuer(t, promoted.current.cert)
				r.wantsErrors(t, 0)

				time.Sleep(time.Until(old.current.cert.NotAfter) - 90*time.Minute)
				if !c.state(t).trusts(old.current.cert) {
					t.Error("the old CA has gone before it expired")
				}
				time.Sleep(4 * time.Hour)
				if c.state(t).trusts(old.current.cert) {
					t.Error("the old CA has not gone")
				}
				r.wantsWell(t, c)
			})
		})
	}
}

// The next CA waits until it is carried, and that has settled.
func TestRotation_NextCAWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var carried atomic.Bool
		r := run(t, c, BundlePropagated(func(bundle []byte) error {
			if !bytes.Equal(bundle, c.snapshot()[bundleKey]) {
				t.Error("it asks for another bundle")
			}
			if !carried.Load() {
				return errors.New("pizzas.example.com has only the old one")
			}
			return nil
		}))
		time.Sleep(start)
		old := c.state(t).current.cert
		c.delete()
		time.Sleep(10 * time.Minute)
		if c.state(t).next == nil || len(r.logged()) > 0 {
			t.Fatalf("it has not waited, or not in silence: %q", r.logged())
		}
		time.Sleep(2 * time.Hour)
		r.wantsIssuer(t, old)
		r.wantsErrors(t, 1)
		expect.ErrorContains(t, fmt.Errorf("%s", r.logged()), "the rotation waits because a registration lacks the next CA", "pizzas.example.com has only", utc(old.NotAfter))
		if err := r.Ready(nil); err != nil {
			t.Errorf("it is not ready: %v", err)
		}

		carried.Store(true) // only for too short a time
		time.Sleep(50 * time.Second)
		carried.Store(false)
		time.Sleep(20 * time.Second)
		carried.Store(true)
		time.Sleep(50 * time.Second)
		if c.state(t).next == nil {
			t.Error("it has not settled")
		}
		time.Sleep(40 * time.Second)
		s := c.state(t)
		if s.next != nil || s.current.cert.Equal(old) {
			t.Error("the next CA has not taken over")
		}
		r.wantsWell(t, c)
	})
}

// A foreign CA settles in the Secret. A CA that is not in the Secret is not trusted,
// however long it has been wanted.
func TestForeignCA_Settles(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		old := c.state(t).current.cert
		other := makeCA(t, time.Now(), 90*day)
		c.faulty(func(r *http.Request) int {
			if r.Method == http.MethodPut && time.Now().Before(other.cert.NotBefore.Add(skew+35*time.Second)) {
				return 500
			}
			return 0
		})
		c.put(encoded(t, &state{current: other}))
		var begin time.Time
		for range 200 {
			time.Sleep(time.Second)
			s := c.state(t)
			if s.next != nil && begin.IsZero() {
				begin = time.Now()
				if !s.next.cert.Equal(other.cert) || !s.current.cert.Equal(old) {
					t.Fatal("the other CA is not the next one")
				}
			}
			if s.current.cert.Equal(other.cert) && s.trusts(old) {
				if begin.IsZero() || time.Since(begin) < time.Minute-2*time.Second {
					t.Errorf("it took over after %s in the Secret", time.Since(begin))
				}
				r.wantsWell(t, c)
				return
			}
		}
		t.Error("it has not taken over")
	})
}

// An API server that knows only the old bundle takes the new certificate.
func TestRotation_OldBundle(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		old := c.state(t).bundle()
		c.delete()
		time.Sleep(2 * time.Minute)
		s := c.state(t)
		r.wantsIssuer(t, s.current.cert)
		alone := encodeCertificates(s.current.cert)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for name, bundle := range map[string][]byte{"old": old, "both": s.bundle(), "new alone": alone} {
				if err := shake(r.Authority, bundle, version, time.Now()); err != nil {
					t.Errorf("%s, TLS %x: %v", name, version, err)
				}
			}
		}
		if err := shake(r.Authority, encodeCertificates(makeCA(t, time.Now(), day).cert), tls.VersionTLS13, time.Now()); err == nil {
			t.Error("who trusts another CA takes it too")
		}
		// A replica that starts later has the cross certificate of the Secret.
		fresh := started(t, c)
		expect.NoError(t, shake(fresh.Authority, old, tls.VersionTLS13, time.Now()))
	})
}

// Previous CAs that are removed from the bundle too stay away.
func TestRotation_RemovedPreviousCAs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		s := makeState(t, time.Now(), 2)
		c.put(encoded(t, s))
		r := started(t, c)
		r.wantsWell(t, c)
		c.put(encoded(t, &state{current: s.current}))
		time.Sleep(time.Hour)
		if n := len(c.state(t).trusted()); n != 1 || c.written() != 0 {
			t.Errorf("after %d writes there are %d CAs", c.written(), n)
		}
		r.wantsWell(t, c)
	})
}

// A tool that makes a CA with each of its runs must not fill the Secret.
func TestForeignCA_Many(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		for range maxPrevious + 3 {
			other := makeCA(t, time.Now(), 10*365*day)
			c.put(encoded(t, &state{current: other}))
			time.Sleep(2 * time.Minute)
			s := c.state(t)
			if !s.current.cert.Equal(other.cert) || len(s.previous) > maxPrevious {
				t.Fatalf("the CA does not take over, with %d before it", len(s.previous))
			}
			r.wantsWell(t, c)
		}
		for range maxPrevious + 3 { // nor is it lost who waits
			c.put(encoded(t, &state{current: makeCA(t, time.Now(), 10*365*day)}))
			time.Sleep(2 * time.Second)
		}
		if n := len(c.state(t).previous); n > maxPrevious {
			t.Errorf("there are %d before it", n)
		}
		r.wantsWell(t, c)
	})
}

// A CA of another kind is used or replaced.
func TestForeignCA_OfAnotherKind(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	expect.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	expect.NoError(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	expect.NoError(t, err)
	template := x509.Certificate{Subject: pkix.Name{CommonName: "theirs"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(365 * day), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := template
	leaf.IsCA, leaf.KeyUsage = false, x509.KeyUsageDigitalSignature
	mute := template
	mute.KeyUsage = x509.KeyUsageCRLSign
	constrained := template
	constrained.PermittedDNSDomains, constrained.PermittedDNSDomainsCritical = []string{"example.com"}, true
	allowed := template
	allowed.PermittedDNSDomains, allowed.PermittedDNSDomainsCritical = []string{"ns.svc"}, true
	clients := template
	clients.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	root := makeCA(t, now, day)
	for name, test := range map[string]struct {
		c    func() (*x509.Certificate, error)
		key  any
		used bool
	}{
		"RSA":            {func() (*x509.Certificate, error) { return sign(&template, &template, weak.Public(), weak) }, weak, true},
		"Ed25519":        {func() (*x509.Certificate, error) { return sign(&template, &template, edwards.Public(), edwards) }, edwards, true},
		"P-384":          {func() (*x509.Certificate, error) { return sign(&template, &template, p384.Public(), p384) }, p384, true},
		"intermediate":   {func() (*x509.Certificate, error) { return sign(&template, root.cert, weak.Public(), root.key) }, weak, false},
		"no CA":          {func() (*x509.Certificate, error) { return sign(&leaf, &leaf, weak.Public(), weak) }, weak, false},
		"may not sign":   {func() (*x509.Certificate, error) { return sign(&mute, &mute, weak.Public(), weak) }, weak, false},
		"other names":    {func() (*x509.Certificate, error) { return sign(&constrained, &constrained, weak.Public(), weak) }, weak, false},
		"these names":    {func() (*x509.Certificate, error) { return sign(&allowed, &allowed, weak.Public(), weak) }, weak, true},
		"for clients":    {func() (*x509.Certificate, error) { return sign(&clients, &clients, weak.Public(), weak) }, weak, false},
		"with other key": {func() (*x509.Certificate, error) { return sign(&template, &template, p384.Public(), p384) }, weak, false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, err := test.c()
			expect.NoError(t, err)
			key, err := x509.MarshalPKCS8PrivateKey(test.key)
			expect.NoError(t, err)
			data := map[string][]byte{certKey: encodeCertificates(cert), privateKey: pemKey(key), bundleKey: encodeCertificates(cert)}
			bubble(t, func(t *testing.T, c *cluster) { // no replica knows another
				c.put(data)
				r := started(t, c)
				r.wantsWell(t, c)
				if got := c.state(t).current.cert.Equal(cert); got != test.used {
					t.Errorf("it is used: %t", got)
				}
			})
			bubble(t, func(t *testing.T, c *cluster) { // one does
				r := started(t, c)
				old := c.state(t)
				c.put(data)
				time.Sleep(2 * time.Minute)
				r.wantsWell(t, c)
				s := c.state(t)
				if got := s.current.cert.Equal(cert); got != test.used {
					t.Errorf("it is used: %t", got)
				}
				if !s.trusts(old.current.cert) {
					t.Error("the old one is not trusted")
				}
				for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
					if err := shake(r.Authority, old.bundle(), version, time.Now()); err != nil {
						t.Errorf("who trusts the old one: %v", err)
					}
				}
			})
		})
	}
}
