package schema

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestAPanicOfTheValidationIsTheCallers(t *testing.T) {
	defer func() {
		if got := recover(); got != "upstream" {
			t.Errorf("got %v", got)
		}
	}()
	_, _ = inTime(t.Context(), func(context.Context) field.ErrorList { panic("upstream") })
}
