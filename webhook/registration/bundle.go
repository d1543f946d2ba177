package registration

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// Bundle is the CA bundle that the API server shall trust.
type Bundle interface {
	// CABundle returns the PEM certificates, and a channel that is closed when there are
	// others. Without any yet, pem is empty: then nothing is written. They are written as
	// they are, so replicas that have the same certificates should return the same text.
	CABundle() (pem []byte, changed <-chan struct{})
}

const (
	// recheck is how often the file of a bundle is looked at.
	recheck = time.Second
	// maxBundle is how long a bundle may be: what an object in the cluster has room for.
	maxBundle = 1 << 20
)

// FileBundle is the CA bundle in a file, and follows its changes. See [BundleFile].
type FileBundle struct {
	path string

	mu      sync.Mutex
	text    []byte // as last read and used
	pem     []byte
	changed chan struct{}
	problem error
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
	f := &FileBundle{path: path, changed: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.load(); f.problem != nil {
		return nil, f.problem
	}
	go func() {
		ticker := time.NewTicker(recheck)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				f.mu.Lock()
				f.load()
				f.mu.Unlock()
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
	f.load()
	return f.problem
}

// load looks at the file. The caller holds the lock.
func (f *FileBundle) load() {
	text, err := readFile(f.path)
	if err != nil {
		f.problem = fmt.Errorf("registration: CA bundle: %w", err)
		return
	}
	if f.text != nil && bytes.Equal(text, f.text) {
		f.problem = nil
		return
	}
	certs, err := certificates(text)
	if err != nil {
		f.problem = fmt.Errorf("registration: CA bundle: %s: %w", f.path, err)
		return
	}
	f.text, f.problem = text, nil
	slices.Sort(certs)
	var all []byte
	for _, der := range slices.Compact(certs) {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: []byte(der)})...)
	}
	if !bytes.Equal(all, f.pem) {
		f.pem = all
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBundle+1))
	if err == nil && len(text) > maxBundle {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxBundle)
	}
	return text, err
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
