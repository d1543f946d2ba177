package registration

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

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
	file *reload.Files[[]byte]

	mu      sync.Mutex
	pem     []byte
	changed chan struct{}
}

var _ Bundle = (*FileBundle)(nil)

// BundleFile returns the certificates in a PEM file, such as ca.crt in the volume of a
// Secret. The error says why the file cannot be read now, or has no certificates.
//
// Until ctx ends, the file is looked at every second. It does not matter how it changes: in
// place, by a rename, or by the swap of a symbolic link. Should the new content be broken,
// the last good one is kept, and [FileBundle.Check] says what is wrong. Certificates are
// sorted, and what is not a certificate is left out, so that the order in the file does not
// matter. Replicas whose files differ for a while, such as those of a volume on several nodes,
// overwrite each other's bundle, ever more slowly, until the files agree: put a new CA there
// beside the old one before anybody serves with it.
func BundleFile(ctx context.Context, path string) (*FileBundle, error) {
	file, err := reload.New(func(contents [][]byte) ([]byte, error) {
		certs, err := certificates(contents[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		slices.Sort(certs)
		var all []byte
		for _, der := range slices.Compact(certs) {
			all = append(all, pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: []byte(der)})...)
		}
		return all, nil
	}, path)
	if err != nil {
		return nil, fmt.Errorf("registration: CA bundle: %w", err)
	}
	f := &FileBundle{file: file, pem: file.Value(), changed: make(chan struct{})}
	go func() {
		ticker := time.NewTicker(reload.Interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = f.Check(nil) // readiness reports it
			}
		}
	}()
	return f, nil
}

// CABundle returns the certificates.
func (f *FileBundle) CABundle() (pem []byte, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pem), f.changed
}

// Check is for readiness, one of webhook.Checks: it returns an error if the file has no
// certificates that could be used now. The request may be nil.
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

const certificateType = "CERTIFICATE"

var errNoCertificates = errors.New("it has no PEM certificates")

// certificates returns the certificates of a bundle, as DER, and an error if there are none
// or one cannot be read.
func certificates(bundle []byte) (all []string, err error) {
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		// As in crypto/x509.CertPool.AppendCertsFromPEM.
		if block.Type != certificateType || len(block.Headers) != 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(all)+1, err)
		}
		all = append(all, string(block.Bytes))
	}
	if len(all) == 0 {
		return nil, errNoCertificates
	}
	return all, nil
}

// carries says whether a bundle has all those certificates. In the bundle, anybody may have
// written anything: what cannot be read is passed over, as the API server does.
func carries(bundle []byte, certs []string) bool {
	missing := map[string]bool{}
	for _, der := range certs {
		missing[der] = true
	}
	for len(missing) > 0 {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return false
		}
		if block.Type == certificateType && len(block.Headers) == 0 {
			delete(missing, string(block.Bytes))
		}
	}
	return true
}
