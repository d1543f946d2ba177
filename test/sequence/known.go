package sequence

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// difference is a known one between a custom resource and the same kind of an aggregated API server.
type difference struct {
	name, cause string
	// is reports whether the answers of both to a request differ in this, and in nothing else.
	is func(r request, custom, aggregated answer) bool
}

// Cause returns the cause of the known difference of a name.
func Cause(name string) string {
	i := slices.IndexFunc(known, func(d difference) bool { return d.name == name })
	return known[i].cause
}

// known are the differences of scheme/resource from custom resources. Its package documentation lists
// those that a client can notice in a request that succeeds.
var known = []difference{
	{
		name:  "methods without a route",
		cause: "the routes of a version have methods, as those of built-in resources: PUT and PATCH of a collection, and POST to a name are answered by 405; a custom resource has no routes, answers 400 to the former, and creates an object (apiserver/pkg/endpoints/installer.go; apiextensions-apiserver/pkg/apiserver/customresource_handler.go, serveResource)",
		is: func(r request, custom, aggregated answer) bool {
			return aggregated.code == http.StatusMethodNotAllowed && custom.code != http.StatusMethodNotAllowed && r.method != http.MethodGet && r.method != http.MethodHead
		},
	},
	{
		name:  "words of 405 and 406",
		cause: "a route that does not have the method or the media type answers before the handler, in other words (go-restful, curly.go and jsr311.go)",
		is: func(_ request, custom, aggregated answer) bool {
			return custom.code == aggregated.code && (custom.code == http.StatusMethodNotAllowed || custom.code == http.StatusNotAcceptable) &&
				custom.contentType == aggregated.contentType && cmp.Equal(custom.warnings, aggregated.warnings)
		},
	},
	{
		name:  "the order in discovery",
		cause: "resources and verbs are in the order of the installer (apiserver/pkg/endpoints/installer.go, Install; apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go)",
		is: func(_ request, custom, aggregated answer) bool {
			return custom.body["kind"] == "APIResourceList" && cmp.Equal(inOrder(custom), inOrder(aggregated), cmp.AllowUnexported(answer{}))
		},
	},
	{
		name:  "discovery in Protobuf",
		cause: "the resources of a version are encoded as its objects, for which there is no Protobuf (apiserver/pkg/endpoints/groupversion.go, InstallREST)",
		is: func(r request, custom, aggregated answer) bool {
			return strings.Contains(r.accept, "protobuf") && strings.Count(r.path, "/") == 3 && custom.contentType == "application/vnd.kubernetes.protobuf"
		},
	},
	{
		name:  "errors in Protobuf",
		cause: "errors are encoded as the objects of a version, for which there is no Protobuf, if the client accepts JSON too (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, supportedMediaTypes)",
		is: func(r request, custom, aggregated answer) bool {
			said, _ := custom.body["text"].(string)
			message, ok := aggregated.body["message"].(string)
			all := []string{message}
			if details, _ := aggregated.body["details"].(map[string]any); details["causes"] != nil { // in the order of a map
				all[0], _, _ = strings.Cut(message, "[")
				for _, cause := range details["causes"].([]any) {
					cause, _ := cause.(map[string]any)
					all = append(all, fmt.Sprint(cause["field"], ": ", cause["message"]))
				}
			}
			return ok && strings.HasPrefix(r.accept, "application/vnd.kubernetes.protobuf,") && custom.contentType == "application/vnd.kubernetes.protobuf" &&
				custom.code >= 400 && custom.code == aggregated.code && cmp.Equal(custom.warnings, aggregated.warnings) &&
				!slices.ContainsFunc(all, func(part string) bool { return !strings.Contains(said, part) })
		},
	},
	{
		name:  "a body in Protobuf",
		cause: "kube-apiserver panics, because its decoder has Protobuf objects without apiVersion and kind (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, unstructuredNegotiatedSerializer); here it is an unknown format",
		is: func(r request, custom, aggregated answer) bool {
			return r.contentType == "application/vnd.kubernetes.protobuf" && custom.panicked && aggregated.code == http.StatusUnsupportedMediaType
		},
	},
	{
		name:  "a version that there is not",
		cause: "the path is not below one of Install, so the server answers with its paths (apiserver/pkg/server/handler.go and routes/index.go)",
		is: func(r request, custom, aggregated answer) bool {
			return strings.Contains(r.path, "/v9/") && custom.code == http.StatusNotFound && aggregated.code == http.StatusNotFound
		},
	},
}

// inOrder returns an answer with its resources and their verbs in order.
func inOrder(a answer) answer {
	resources, _ := a.body["resources"].([]any)
	for _, r := range resources {
		r, _ := r.(map[string]any)
		r["verbs"] = sorted(r["verbs"], func(v any) string { return text(v) })
	}
	a.body["resources"] = sorted(a.body["resources"], func(v any) string { return text(v) })
	return a
}
