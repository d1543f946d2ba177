package controlplane

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
)

const (
	// Attribute is the key of the attribute (testing.TB.Attr) that ForTest gives a
	// test. Its value is the version of the API server, or Missing.
	Attribute = "kube-apiserver"
	// Missing is that there are no binaries.
	Missing = "missing"
)

// ForTest starts a control plane for t and stops it when t and its subtests are
// done. A test that changes nothing outside namespaces, groups and objects of its own
// takes [Shared] instead: a start costs seconds.
//
// Without binaries it skips t; if CRDKIT_REQUIRE_CONTROLPLANE is 1, it fails t instead,
// so that a test run that must prove something cannot skip silently.
//
// Either way t gets the attribute [Attribute], from which package matrix knows that
// t needs a control plane, and which it had.
func ForTest(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), opts...)
	require(t, cp, err)
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Shared returns the control plane that the tests of one package share. It starts with
// the first test that asks for it, without options, and ends with the process. Otherwise
// it behaves like [ForTest].
func Shared(t testing.TB) *ControlPlane {
	t.Helper()
	cp, err := shared()
	require(t, cp, err)
	t.Cleanup(func() {
		for _, p := range []*process{cp.etcd, cp.apiserver} {
			select {
			case <-p.done:
				t.Errorf("%s ended during the test", p.name)
			default:
			}
		}
	})
	return cp
}

var shared = sync.OnceValues(func() (*ControlPlane, error) { return Start(context.Background()) })

// require ends t if there is no control plane, and notes which there is.
func require(t testing.TB, cp *ControlPlane, err error) {
	t.Helper()
	if errors.Is(err, ErrNoBinaries) {
		t.Attr(Attribute, Missing)
		if os.Getenv("CRDKIT_REQUIRE_CONTROLPLANE") != "1" {
			t.Skip(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Attr(Attribute, cp.Version())
}

// Address returns an address of this machine that is not loopback, of which EndpointSlices
// take none. It skips t if there is no other.
func Address(t testing.TB) net.IP {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, is := a.(*net.IPNet); is && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	t.Skip("this machine has no address but loopback, and EndpointSlices take none")
	return nil
}

// Release is the minor release of the API server that hack/controlplane builds. Everything runs
// with it; `make test-matrix` runs what it can with older ones.
const Release = 37

// SkipIfOlder skips a test of what this release does, or says, otherwise than an older one, if
// the control plane is older. The reason completes "it is about v1.37:".
func (cp *ControlPlane) SkipIfOlder(t testing.TB, reason string) {
	t.Helper()
	if cp.Minor() < Release {
		t.Skipf("it is about v1.%d: %s", Release, reason)
	}
}

// SkipFrom skips a test of what older releases do, if the control plane is of a minor release or
// a later one. The reason completes "v1.37 behaves differently:".
func (cp *ControlPlane) SkipFrom(t testing.TB, minor int, reason string) {
	t.Helper()
	if cp.Minor() >= minor {
		t.Skipf("v1.%d behaves differently: %s", minor, reason)
	}
}
