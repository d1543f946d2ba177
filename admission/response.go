package admission

import (
	"encoding/base64"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// respond appends the text of an AdmissionResponse: with a status the request is denied.
// The responses of v1 and of v1beta1 have the same members.
func (c *call) respond(b []byte, uid types.UID, status *metav1.Status, patch []byte) ([]byte, error) {
	b = rawjson.AppendQuote(append(b, `{"uid":`...), string(uid))
	if status == nil {
		b = append(b, `,"allowed":true`...)
	} else {
		b = append(b, `,"allowed":false`...)
	}
	if patch != nil {
		b = append(b, `,"patch":"`...)
		b = base64.StdEncoding.AppendEncode(b, patch)
		b = append(b, `","patchType":"JSONPatch"`...)
	}
	var err error
	add := func(name string, value any) {
		text, e := json.Marshal(value)
		if e != nil {
			err = e
		}
		b = append(append(b, name...), text...)
	}
	if status != nil {
		add(`,"status":`, status)
	}
	if len(c.annotations) > 0 {
		add(`,"auditAnnotations":`, c.annotations)
	}
	if len(c.warnings) > 0 {
		add(`,"warnings":`, fit(c.warnings))
	}
	return append(b, '}'), err
}
