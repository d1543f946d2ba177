package registration

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/internal/reload"
)

// Bundle is the CA bundle that the API server shall trust.
type Bundle interface {
	// CABundle returns the PEM certificates, and a channel that is closed when there are
	// others. Without any yet, pem is empty: then nothing is written. They are written as
	// they are, so replicas that have the same certificates should return the same text.
	CABundle() (pem []byte, changed <-chan struct{})
}

// FileBundle is the CA bundle in a file, and follows its changes. See [BundleFile].
type FileBundle struct {
	file    *reload.Files[[]byte]
	mu      sync.Mutex
	pem     []byte
	changed chan struct{}
}

var _ Bundle = (*FileBundle)(nil)

// BundleFile returns the certificates in a PEM file, such as ca.crt in the volume of a
// Secret. The error says why the file cannot be read now, or has no certificates.
//
// Until ctx ends, the file is read every second. Should the new content be broken,
// the last good one is kept, and [FileBundle.Check] reports what is wrong. Replicas whose files
// differ for a while, such as those of a volume on several nodes, overwrite each other's bundle
// until the files agree: put a new CA there beside the old one before anybody serves with it.
func BundleFile(ctx context.Context, path string) (*FileBundle, error) {
	file, err := reload.New(func(contents [][]byte) ([]byte, error) {
		if _, err := cert.ParseCertsPEM(contents[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return contents[0], nil
	}, path)
	if err != nil {
		return nil, fmt.Errorf("registration: CA bundle: %w", err)
	}
	f := &FileBundle{file: file, pem: file.Value(), changed: make(chan struct{})}
	go func() {
		for ctx.Err() == nil {
			_ = f.Check(nil) // readiness reports it
			select {
			case <-ctx.Done():
			case <-time.After(reload.Interval):
			}
		}
	}()
	return f, nil
}

// CABundle returns the content of the file.
func (f *FileBundle) CABundle() (pem []byte, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pem), f.changed
}

// Check reads the file. It is for readiness, one of webhook.Checks: it returns an error if
// the file has no certificates that could be used now. The request may be nil.
func (f *FileBundle) Check(*http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pem, err := f.file.Check()
	if !bytes.Equal(pem, f.pem) {
		f.pem = pem
		close(f.changed)
		f.changed = make(chan struct{})
	}
	if err != nil {
		return fmt.Errorf("registration: CA bundle: %w", err)
	}
	return nil
}

// trusts reports whether a bundle has all certificates of another.
func trusts(bundle, pem []byte) bool {
	found, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return false
	}
	wanted, err := cert.ParseCertsPEM(pem)
	return err == nil && !slices.ContainsFunc(wanted, func(c *x509.Certificate) bool { return !slices.ContainsFunc(found, c.Equal) })
}
