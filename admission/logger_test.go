package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
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

// Strings of clients and functions are escaped in the log, and bounded there and in the answer.
func TestLogger_StringsOfClients(t *testing.T) {
	text := logcheck.Bad()
	quoted, err := json.Marshal(text)
	expect.NoError(t, err)
	for name, f := range map[string]func(ctx context.Context) error{
		"a panic":   func(context.Context) error { panic(text) },
		"an error":  func(context.Context) error { return errors.New(text) },
		"a refusal": func(context.Context) error { return apierrors.NewBadRequest(text) },
		"both":      func(context.Context) error { return errors.Join(apierrors.NewBadRequest(text), errors.New(text)) },
		"the author's line": func(ctx context.Context) error {
			klog.FromContext(ctx).Info("Mutating")
			return errors.New("x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			logger, entries := logcheck.New(t)
			h := admission.NewHandler(pizzaScheme(t), admission.Mutate(func(ctx context.Context, _ *v1beta1.Pizza) error { return f(ctx) }))
			logged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r.WithContext(klog.NewContext(r.Context(), logger)))
			})
			body := request{object: pizza("v1beta1", "")}.String()
			for _, value := range []string{`"margherita"`, `"default"`, `"ada"`} {
				body = strings.ReplaceAll(body, value, string(quoted))
			}
			body = strings.ReplaceAll(body, `"u-1"`, `"u\n\u001b[31m"`)
			w := post(t, logged, body)
			var answer struct {
				Message  string
				Response struct{ Status struct{ Message string } }
			}
			expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
			if got := answer.Message + answer.Response.Status.Message; got == "" || len(got) > 40<<10 {
				t.Errorf("the message has %d bytes: %.200s", len(got), got)
			}
			if entries() == 0 && name != "a refusal" {
				t.Error("nothing was logged")
			}
		})
	}
}
