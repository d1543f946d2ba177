package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Checks is a handler for an endpoint such as /healthz or /readyz. Each check has a
// name, and returns nil when all is well. The answer is 200 and "ok" if all checks
// pass, else 500 and one line a check; with the query parameter verbose, it has the
// lines in any case. That is how the API server's own endpoints answer
// (k8s.io/apiserver/pkg/server/healthz). Without checks it is always 200.
type Checks map[string]func(*http.Request) error

func (c Checks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var lines strings.Builder
	code := http.StatusOK
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if err := c[name](r); err != nil {
			code = http.StatusInternalServerError
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", name, err)
		} else {
			fmt.Fprintf(&lines, "[+]%s ok\n", name)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	if code != http.StatusOK || r.URL.Query().Has("verbose") {
		fmt.Fprint(w, lines.String())
		return
	}
	fmt.Fprint(w, "ok")
}
