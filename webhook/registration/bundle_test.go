package registration_test

import (
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook/registration"
)

// A broken bundle file keeps the old bundle, and is reported. Package internal/reload tests that changes are followed.
func TestBundleFile_Broken(t *testing.T) {
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	path := filepath.Join(t.TempDir(), "ca.crt")
	if b, err := registration.BundleFile(path); !errors.Is(err, os.ErrNotExist) || b != nil {
		t.Errorf("a missing file: got %v", err)
	}
	expect.NoError(t, os.WriteFile(path, ca, 0o600))
	synctest.Test(t, func(t *testing.T) {
		b, err := registration.BundleFile(path)
		expect.NoError(t, err)
		expect.NoError(t, b.Ready(nil))
		for name, broken := range map[string][]byte{
			"empty":                 {},
			"garbage":               []byte("garbage"),
			"a key":                 pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}}),
			"cut off":               slices.Concat(ca, ca[:len(ca)-50]),
			"no certificate at all": slices.Concat(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}})),
		} {
			expect.NoError(t, os.WriteFile(path, broken, 0o600))
			time.Sleep(2 * time.Second)
			if err := b.Ready(nil); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: the check says %v", name, err)
			}
			got := b.CABundle()
			if diff := cmp.Diff(ca, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		expect.NoError(t, os.Remove(path))
		if err := b.Ready(nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without the file, the check says %v", err)
		}
		expect.NoError(t, os.WriteFile(path, ca, 0o600))
		expect.NoError(t, b.Ready(nil))
	})
}
