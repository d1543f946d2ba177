package differential

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdkit/crdkit/schema"
)

// Outcome is what came of a request, in a form to compare with go-cmp.
type Outcome struct {
	Code     int32
	Reason   string
	Message  string   // empty if there are several causes: their order is not defined
	Causes   []string // sorted
	Warnings []string // sorted
	Object   map[string]any
	Stored   map[string]any // what is in etcd
}

// fail sets what an error says.
func (o *Outcome) fail(status metav1.Status) {
	o.Code, o.Reason = status.Code, string(status.Reason)
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			o.Causes = append(o.Causes, fmt.Sprintf("%s: %s: %s", c.Field, c.Type, c.Message))
		}
		slices.Sort(o.Causes)
	}
	if len(o.Causes) < 2 {
		o.Message = status.Message
	}
}

// offline is the outcome of a request to package schema. The code of success does not
// come from there.
func offline(out *schema.Result, err error, code int32) (o Outcome, _ error) {
	if out != nil {
		o.Warnings = slices.Clone(out.Warnings)
		slices.Sort(o.Warnings)
	}
	if err != nil {
		var status *apierrors.StatusError
		if !errors.As(err, &status) {
			return o, err
		}
		// On its way, text that is not UTF-8 becomes so.
		var sent metav1.Status
		if err := json.Unmarshal(mustJSON(status.ErrStatus), &sent); err != nil {
			return o, err
		}
		o.fail(sent)
		return o, nil
	}
	o.Code = code
	o.Object, err = decode(out.Object)
	return o, err
}

// Refusal is the outcome of an error, such as that of a definition.
func Refusal(err error) (o Outcome, _ error) {
	if err == nil {
		return Outcome{Code: 201}, nil
	}
	// The validation of a definition can panic, and then there is no answer.
	if text := err.Error(); strings.Contains(text, "the server's validation panics") || strings.Contains(text, "stream error: ") && strings.Contains(text, "INTERNAL_ERROR") {
		return Outcome{Code: 500}, nil
	}
	return offline(nil, err, 0)
}

// decode decodes an object for comparison: 1 is an int64, and 1.0 a float64.
func decode(text []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	return object, nil
}

// strip removes what only a server knows; created says that the object is new.
func strip(object map[string]any, created bool) {
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	delete(metadata, "managedFields")
	if created {
		delete(metadata, "uid")
		delete(metadata, "creationTimestamp")
		if generate, _ := metadata["generateName"].(string); generate != "" {
			delete(metadata, "name")
		}
	}
}

func sorted[T cmp.Ordered](s []T) []T { return slices.Sorted(slices.Values(s)) }

// mustJSON encodes what came from JSON.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
