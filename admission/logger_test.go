package admission_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

func TestLogger_SaysWhatTheRequestIs(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	panics := false
	h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error {
		klog.FromContext(ctx).Info("Mutating", "mine", 1)
		if panics {
			panic("dough")
		}
		return nil
	}))
	logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(klog.NewContext(r.Context(), logger)))
	})
	const values = `"kind"="Pizza" "object"={"name"="margherita" "namespace"="default"} "operation"="CREATE" "user"="ada" "uid"="u-1"`
	ask(t, logged, request{object: pizza("v1beta1", "")})
	if want := `"level"=0 "msg"="Mutating" ` + values + ` "mine"=1`; len(lines) != 1 || lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines, want)
	}
	if w := post(t, logged, strings.Replace(request{object: pizza("v1beta1", "")}.String(), `"ada"`, `ada`, 1)); w.Code != http.StatusBadRequest {
		t.Errorf("a user that is no JSON gets %d %s", w.Code, w.Body)
	}
	panics = true
	undecided(t, logged, request{object: pizza("v1beta1", "")})
	if line := lines[2]; !strings.Contains(line, `"Admission panicked" "error"="panic: dough" `+values+` "stack"=`) {
		t.Errorf("got %s", line)
	}
}
