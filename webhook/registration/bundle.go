package registration

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/internal/reload"
)

// Bundle provides the CA bundle that the API server trusts when it calls the webhooks.
type Bundle interface {
	// CABundle returns PEM certificates, which [Webhooks.Inject] writes unchanged, or nothing as
	// long as there is no certificate. Inject calls CABundle several times a second. Replicas with
	// the same certificates should return the same bytes, because they overwrite each other's
	// bundle otherwise.
	CABundle() []byte
	// Ready is a readiness check for webhook.Checks. It returns an error while CABundle has no
	// current certificates. The request may be nil.
	Ready(*http.Request) error
}

// fileBundle is a [Bundle] of a file.
type fileBundle struct{ file *reload.Files[[]byte] }

// BundleFile returns a [Bundle] with the PEM certificates of a file, such as ca.crt in the
// volume of a Secret. It returns an error if the file cannot be read, or has no
// certificates.
//
// The Bundle follows the changes of the file, which is read at most once a second. While the file is
// invalid, the last valid content is used, and Ready returns an error.
//
// While the files of several replicas differ, such as the volumes of a Secret on different nodes,
// the replicas overwrite each other's bundle. So rotate the CA in this order:
//
//  1. Add the new CA certificate to the file, beside the old one.
//  2. Wait until all replicas have the new file, and [Webhooks.CheckBundle] accepts it.
//  3. Serve with certificates of the new CA in all replicas.
//  4. Remove the old CA certificate from the file.
func BundleFile(path string) (Bundle, error) {
	file, err := reload.New(func(contents [][]byte) ([]byte, error) {
		_, err := cert.ParseCertsPEM(contents[0])
		if err == nil {
			err = reload.Complete(contents[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return contents[0], nil
	}, path)
	if err != nil {
		return nil, fmt.Errorf("registration: CA bundle: %w", err)
	}
	return &fileBundle{file}, nil
}

func (f *fileBundle) CABundle() []byte { return slices.Clone(f.file.Value()) }

func (f *fileBundle) Ready(*http.Request) error {
	if _, err := f.file.Check(); err != nil {
		return fmt.Errorf("registration: CA bundle: %w", err)
	}
	return nil
}
