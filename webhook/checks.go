package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Checks is a handler for an endpoint such as /healthz or /readyz. It maps the name of each check
// to a function, which returns nil if the check passes, and must be safe for concurrent use.
//
// If all checks pass, or if there are none, the response is 200 with the body "ok", and otherwise
// 500 with one line for each check. With the query parameter verbose, both have these lines, as on
// the endpoints of the API server (k8s.io/apiserver/pkg/server/healthz).
type Checks map[string]func(*http.Request) error

// ServeHTTP runs the checks in the order of their names.
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
