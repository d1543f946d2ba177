package offline

import (
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// maxCopied bounds how much larger the copy operations of a patch make an object
// (apiserver/pkg/server/config.go, JSONPatchMaxCopyBytes).
const maxCopied = 3 << 20

// applyPatch applies a JSON patch as the server does. The server sets the library's variable
// AccumulatedCopySizeLimit, which is not a package's to set: a few copies of copies would
// fill the memory. So a patch with copies is applied in parts, each up to the next copy. (In
// the error about the limit, the size differs from the server's by some bytes.)
func applyPatch(patch jsonpatch.Patch, object []byte) ([]byte, error) {
	copied := int64(0)
	for len(patch) > 0 {
		n := 1 + slices.IndexFunc(patch, func(op jsonpatch.Operation) bool { return op.Kind() == "copy" })
		if n == 0 {
			return patch.Apply(object)
		}
		var err error
		if object, err = patch[:n-1].Apply(object); err != nil {
			return nil, err
		}
		before := len(object)
		if object, err = patch[n-1 : n].Apply(object); err != nil {
			return nil, err
		}
		if copied += int64(max(0, len(object)-before)); copied > maxCopied {
			return nil, jsonpatch.NewAccumulatedCopySizeError(maxCopied, copied)
		}
		patch = patch[n:]
	}
	return object, nil
}
