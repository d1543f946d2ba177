package schema_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
)

// The server's messages are recognised by their words. When one of them changes, an entry
// for it matches nothing any more.
func TestEachEntryOfTheTablesMatchesAMessageOfTheServer(t *testing.T) {
	texts := []string{}
	for _, test := range problemCases() {
		texts = append(texts, test.text)
	}
	for _, text := range refused(t) {
		texts = append(texts, text)
	}
	advices, rules := schema.Advices(), schema.StructuralRules()
	advised, ruled := make([]bool, len(advices)), make([]bool, len(rules))
	for _, text := range texts {
		found, err := schema.Check([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if i := schema.AdviceFor(f); i >= 0 {
				advised[i] = true
			}
		}
		for _, err := range serverErrors(text) {
			if i := schema.StructuralRuleFor(err); i >= 0 {
				ruled[i] = true
			}
		}
	}
	for i, name := range advices {
		if !advised[i] {
			t.Errorf("no problem has the advice %s", name)
		}
	}
	for i, name := range rules {
		if !ruled[i] {
			t.Errorf("no error is about the rule %s", name)
		}
	}
}

// serverErrors are the errors that the server has for the definition in a text.
func serverErrors(text string) (errs field.ErrorList) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if yaml.Unmarshal([]byte(text), crd) != nil {
		return nil
	}
	_, err := schema.New(crd)
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		kind, detail := field.ErrorType(cause.Type), cause.Message
		if _, after, ok := strings.Cut(detail, ": "); ok {
			detail = after
		}
		errs = append(errs, &field.Error{Type: kind, Field: cause.Field, Detail: detail})
	}
	return errs
}
