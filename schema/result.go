package schema

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Result is what became of a request. Of a request that fails, it has the warnings alone.
type Result struct {
	// Object is what the server answers, to a dry run too: the object in the version of
	// the request, read back from what is stored, in JSON. Metadata that only a server
	// knows are not there: see [Version.Create] and [Version.Update].
	Object json.RawMessage
	// Stored is what a write leaves in storage: the object in the storage version, in JSON.
	// Where that is not the version of the request, it has been converted and has lost what
	// the schema of the storage version does not have. If a webhook would have to convert
	// it, and there is none here, Stored is nil and Object is as it was before that. (Package
	// offline has one.) A read has no Stored.
	Stored json.RawMessage
	// Warnings are those of the response, each once, in the server's order. (Where they
	// have more than 4096 characters in all, the server cuts them short to fit in a
	// header.)
	Warnings []string
	// Deleted says that the server deletes the object, because its deletion was waiting
	// for the finalizers that are gone now.
	Deleted bool
}

// Unstructured decodes Object in the form that [Version.Validate], [Version.Table] and the
// other steps take: whole numbers are int64. (For an object of a Go type, decode Object
// with encoding/json.)
func (r *Result) Unstructured() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(r.Object)
}
