package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/test/expect"
)

// Flags that do not fit are faults.
func TestFlags_DoNotFit(t *testing.T) {
	for args, want := range map[string]string{
		"--tls-cert-file=tls.crt":                              "--tls-cert-file, --tls-private-key-file and --ca-file belong together",
		"--tls-cert-file=tls.crt --tls-private-key-file=t.key": "--tls-cert-file, --tls-private-key-file and --ca-file belong together",
		"--ca-file=ca.crt":                                     "--tls-cert-file, --tls-private-key-file and --ca-file belong together",
		"--ca-lifetime=-1h":                                    "--ca-lifetime=-1h0m0s must not be negative",
		"--ca-file=a --tls-cert-file=b --tls-private-key-file=c --ca-settle=1s": "--ca-settle is for certificates that the operator makes",
		"serve":          `unexpected arguments: ["serve"]`,
		"manifests more": `unexpected arguments: ["more"]`,
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}

// Without flags, the operator is the one in the manifests.
func TestFlags_None(t *testing.T) {
	var o options
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(fs)
	_, err := parse(fs, []string{"--namespace=" + pizza.Namespace})
	expect.NoError(t, err)
	if diff := cmp.Diff(pizza.InCluster(), o.endpoint); diff != "" {
		t.Errorf("(-manifests +flags):\n%s", diff)
	}
	if n := len(o.authority()); n != 0 {
		t.Errorf("%d options of the authority are not what it does by default", n)
	}
	if o.delay != 5*time.Second || o.drainWithin != 30*time.Second || !o.leaderElect || o.securePort != 8443 {
		t.Errorf("%+v", o)
	}
}

// The manifests have the CA, if it is given.
func TestManifests_CA(t *testing.T) {
	chain, _, err := cert.GenerateSelfSignedCertKey("pizza.example.com", nil, nil)
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "bad.crt")
	expect.NoError(t, errors.Join(err, os.WriteFile(good, chain, 0o600), os.WriteFile(bad, []byte("no PEM"), 0o600)))
	for args, want := range map[string]int{"": 0, "--ca-file=" + good: 4} {
		var out bytes.Buffer
		if err := manifests(&out, strings.Fields(args)); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if n := strings.Count(out.String(), "caBundle: "); n != want {
			t.Errorf("%q: %d have a CA bundle, want %d", args, n, want)
		}
	}
	for _, file := range []string{bad, filepath.Join(dir, "none.crt")} {
		if err := manifests(&bytes.Buffer{}, []string{"--ca-file=" + file}); err == nil {
			t.Errorf("%s is taken", file)
		}
	}
}
