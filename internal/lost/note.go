package lost

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Annotation is the key of the annotation.
const Annotation = "conversion.crdkit.github.io/lost"

// Field returns the path of the annotation, for errors.
func Field() *field.Path { return field.NewPath("metadata", "annotations").Key(Annotation) }

// unrelated is the error of a conversion without the differences of the annotation.
type unrelated struct{ error }

// invalid returns the error for an annotation that cannot be restored, unless it is not to blame.
func invalid(err error) error {
	if e, ok := errors.AsType[unrelated](err); ok {
		return e.error
	}
	return field.Invalid(Field(), field.OmitValueType{}, err.Error()+": remove the annotation if the rest of the object is correct")
}

const (
	// maxPlain is the largest list of differences that is stored without compression. Half of
	// the space stays free for other annotations. Release 0.1.0 reads only this form.
	maxPlain = 128 << 10
	// maxLost is the largest list of differences in bytes: as large as an object that etcd stores
	// (--max-request-bytes).
	maxLost = 3 << 19
	// maxValues is how many values the differences may have. Each takes half a kilobyte of memory
	// while they are restored, but a compressed zero takes less than a byte.
	maxValues = 1 << 17
)

// note is the value of the annotation. It has either Lost or Gzip.
type note struct {
	Spoke string          `json:"spoke"`
	Hub   string          `json:"hub"`
	Of    string          `json:"of"` // a hash of the spoke
	Lost  json.RawMessage `json:"lost"`
	Gzip  []byte          `json:"gzip"` // the compressed Lost
}

// Annotate adds the annotation to the annotations of a spoke, in the first form that the API server
// accepts: readable, compressed, or compressed with hashes of list elements. Spoke and hub are the
// versions. Of is the hash of the spoke.
func Annotate(annotations map[string]string, spoke, hub, of string, changes merge.Changes) error {
	head := rawjson.AppendQuote([]byte(`{"spoke":`), spoke)
	head = rawjson.AppendQuote(append(head, `,"hub":`...), hub)
	head = rawjson.AppendQuote(append(head, `,"of":`...), of)
	lost := changes.Encode()
	reason := ""
	if err := checkSize(lost); err != nil {
		reason = " (" + err.Error() + ")"
	}
	for _, form := range []func() []byte{
		func() []byte {
			if len(lost) > maxPlain {
				return nil
			}
			return append([]byte(`,"lost":`), lost...)
		},
		func() []byte { return pack(lost) },
		func() []byte { return pack(changes.Compact().Encode()) },
	} {
		if text := form(); text != nil {
			annotations[Annotation] = string(head) + string(text) + "}"
			if validation.ValidateAnnotationsSize(annotations) == nil {
				return nil
			}
		}
	}
	return &field.Error{Type: field.ErrorTypeTooLong, Field: Field().String(), BadValue: field.OmitValueType{}, Detail: fmt.Sprintf(
		"the fields that %s cannot express take %d bytes%s, which do not fit into the %d bytes of an object's annotations: shorten these fields or the other annotations",
		spoke, len(lost), reason, validation.TotalAnnotationSizeLimitB)}
}

// pack returns the member of a note that has a list of differences compressed, or nil if the
// list is too large.
func pack(lost []byte) []byte {
	if checkSize(lost) != nil {
		return nil
	}
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(lost) // a Buffer returns no error
	_ = w.Close()
	return append(base64.StdEncoding.AppendEncode([]byte(`,"gzip":"`), compressed.Bytes()), '"')
}

// unpack returns the list of differences that was compressed.
func unpack(compressed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	lost, err := io.ReadAll(io.LimitReader(r, maxLost+1))
	if err != nil {
		return nil, err
	}
	return lost, checkSize(lost)
}

// checkSize returns an error if a list of differences would take too much memory.
func checkSize(lost []byte) error {
	if len(lost) > maxLost {
		return fmt.Errorf("more than %d bytes", maxLost)
	}
	values, quoted := 0, false
	for i := 0; i < len(lost); i++ {
		switch b := lost[i]; {
		case b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case !quoted && (b == ',' || b == '[' || b == '{'):
			values++
		}
	}
	if values > maxValues {
		return fmt.Errorf("more than %d values", maxValues)
	}
	return nil
}

// readNote reads the value of the annotation. An empty spoke stands for any version.
func readNote(text, spoke string) (n note, err error) {
	if len(text) > validation.TotalAnnotationSizeLimitB {
		return n, fmt.Errorf("%d bytes, expected at most %d", len(text), validation.TotalAnnotationSizeLimitB)
	}
	strict, err := kjson.UnmarshalStrict([]byte(text), &n)
	if err := errors.Join(append(strict, err)...); err != nil {
		return n, err
	}
	if spoke != "" && n.Spoke != spoke || n.Hub == n.Spoke {
		return n, fmt.Errorf("recorded for version %q and hub %q, expected version %q and another hub", n.Spoke, n.Hub, spoke)
	}
	if (n.Lost == nil) == (n.Gzip == nil) {
		return n, errors.New("expected either lost or gzip")
	}
	return n, nil
}
