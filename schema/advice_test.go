package schema_test

import (
	"testing"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/test/expect"
)

// The server's messages are recognised by their words. When one of them changes, an entry
// for it matches nothing any more.
func TestAdvices_EachMatchesAMessage(t *testing.T) {
	texts := []string{}
	for _, test := range problemCases() {
		texts = append(texts, test.text)
	}
	for _, text := range refused(t) {
		texts = append(texts, text)
	}
	advices := schema.Advices()
	advised := make([]bool, len(advices))
	for _, text := range texts {
		found, err := schema.Check([]byte(text))
		expect.NoError(t, err)
		for _, p := range found {
			if i := schema.AdviceFor(p); i >= 0 {
				advised[i] = true
			}
		}
	}
	for i, name := range advices {
		if !advised[i] {
			t.Errorf("no problem has the advice %s", name)
		}
	}
}
