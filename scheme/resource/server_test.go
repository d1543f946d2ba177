package resource_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/scheme/resource"
	"github.com/crdkit/crdkit/test/aggregated"
	"github.com/crdkit/crdkit/test/expect"
)

// serve runs a server with resources until the test ends, and returns the configuration of its clients.
func serve(t *testing.T, types *runtime.Scheme, resources ...*resource.Resource) *rest.Config {
	t.Helper()
	return serveWith(t, memory(t), types, resources...)
}

// memory returns a storage that outlives the servers of a test.
func memory(t *testing.T) generic.RESTOptionsGetter {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return apiservertest.RESTOptions(ctx, nil)
}

func serveWith(t *testing.T, storage generic.RESTOptionsGetter, types *runtime.Scheme, resources ...*resource.Resource) *rest.Config {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config, stopped, err := aggregated.Start(ctx, storage, types, resources...)
	expect.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return config
}

// client sends requests for pizzas of the namespace default.
type client struct {
	t        *testing.T
	http     *http.Client
	host     string
	warnings []string // of the last answer
	answer   map[string]any
}

func newClient(t *testing.T, config *rest.Config) *client {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	return &client{t: t, http: c, host: config.Host + "/apis/" + v1beta1.GroupVersion.Group + "/"}
}

// methods are the methods and content types of the verbs of send.
var methods = map[string][2]string{
	"create": {http.MethodPost, "application/json"}, "get": {http.MethodGet, "application/json"}, "update": {http.MethodPut, "application/json"},
	"patch": {http.MethodPatch, "application/merge-patch+json"}, "apply": {http.MethodPatch, "application/apply-patch+yaml"},
	"strategic": {http.MethodPatch, "application/strategic-merge-patch+json"},
}

// send sends a request, such as "patch v1beta1 a/status", and returns the spec of the answer, or the reason and causes of an
// error. The body is completed by apiVersion and kind.
func (c *client) send(request, body string) string {
	c.t.Helper()
	verb, rest, _ := strings.Cut(request, " ")
	version, name, _ := strings.Cut(rest, " ")
	path := version + "/namespaces/default/pizzas"
	if strings.HasPrefix(name, "?") {
		path += name
	} else if name != "" {
		path += "/" + name
	}
	if verb != "patch" && verb != "get" && verb != "strategic" {
		body = fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Pizza",%s`, v1beta1.GroupVersion.Group, version, strings.TrimPrefix(body, "{"))
	}
	return c.do(methods[verb][0], path, methods[verb][1], body)
}

func (c *client) do(method, path, contentType, body string) string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.host+path, strings.NewReader(body))
	expect.NoError(c.t, err)
	req.Header.Set("Content-Type", contentType)
	resp, err := c.http.Do(req)
	expect.NoError(c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	expect.NoError(c.t, err)
	c.warnings, c.answer = resp.Header.Values("Warning"), nil
	var status metav1.Status
	if resp.StatusCode >= 400 {
		if err := json.Unmarshal(text, &status); err != nil {
			return fmt.Sprint(resp.StatusCode, " ", string(text))
		}
		result := fmt.Sprint(resp.StatusCode, " ", cmp.Or(string(status.Reason), status.Message))
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				result += fmt.Sprintf(", %s: %s", cause.Field, cause.Type)
			}
		}
		c.t.Log(status.Message)
		return result
	}
	expect.NoError(c.t, json.Unmarshal(text, &c.answer))
	spec, err := json.Marshal(c.answer["spec"])
	expect.NoError(c.t, err)
	return fmt.Sprint(resp.StatusCode, " ", string(spec))
}
