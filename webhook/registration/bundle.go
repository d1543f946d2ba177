package registration

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/internal/reload"
)

// Bundle is the CA bundle that the API server shall trust.
type Bundle interface {
	// CABundle returns the PEM certificates. They are empty until the first certificate exists: then nothing is
	// written. It is called several times a second. They are written as they are, so replicas
	// that have the same certificates should return the same text.
	CABundle() []byte
}

// FileBundle is the CA bundle in a file, and follows its changes. See [BundleFile].
type FileBundle struct{ file *reload.Files[[]byte] }

var _ Bundle = (*FileBundle)(nil)

// BundleFile returns the certificates in a PEM file, such as ca.crt in the volume of a
// Secret. The error says why the file cannot be read now, or has no certificates.
//
// The file is read again at most once a second. Should the new content be broken,
// the last good one is kept, and [FileBundle.Check] reports what is wrong. Replicas whose files
// differ for a while, such as those of a volume on several nodes, overwrite each other's bundle
// until the files agree: put a new CA there beside the old one before any replica serves with it.
func BundleFile(path string) (*FileBundle, error) {
	file, err := reload.New(func(contents [][]byte) ([]byte, error) {
		if _, err := cert.ParseCertsPEM(contents[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return contents[0], nil
	}, path)
	if err != nil {
		return nil, fmt.Errorf("registration: CA bundle: %w", err)
	}
	return &FileBundle{file}, nil
}

// CABundle returns the last good content of the file.
func (f *FileBundle) CABundle() []byte { return slices.Clone(f.file.Value()) }

// Check reads the file. It is for readiness, one of webhook.Checks: it returns an error if
// the file has no certificates that could be used now. The request may be nil.
func (f *FileBundle) Check(*http.Request) error {
	if _, err := f.file.Check(); err != nil {
		return fmt.Errorf("registration: CA bundle: %w", err)
	}
	return nil
}
