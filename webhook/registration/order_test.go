package registration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/webhook/registration"
)

// slowAPI is an API server that has definitions alone, lists them slowly, and notes in which
// order it is written to.
type slowAPI struct {
	delay time.Duration

	mu      sync.Mutex
	written []string
	version int
}

func (a *slowAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := map[string]string{
		"customresourcedefinitions":       "CustomResourceDefinition",
		"mutatingwebhookconfigurations":   "MutatingWebhookConfiguration",
		"validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
	}
	w.Header().Set("Content-Type", "application/json")
	resource := path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodPatch:
		u := &unstructured.Unstructured{}
		if err := json.NewDecoder(r.Body).Decode(&u.Object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.mu.Lock()
		a.version++
		a.written = append(a.written, u.GetKind())
		u.SetResourceVersion(fmt.Sprint(1000 + a.version))
		a.mu.Unlock()
		_ = json.NewEncoder(w).Encode(u)
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		items := []any{}
		if resource == "customresourcedefinitions" {
			time.Sleep(a.delay)
			name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
			items = append(items, map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": kind[resource], "metadata": map[string]any{"name": name, "resourceVersion": "1"}})
		}
		group := strings.Split(r.URL.Path, "/")[2]
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": group + "/v1", "kind": kind[resource] + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	}
}

func (a *slowAPI) start(t testing.TB) *rest.Config {
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestDefinitionsAreWrittenFirst(t *testing.T) {
	s := newShop(t, "example.com")
	ca, _, _ := newCA(t, "localhost")
	api := &slowAPI{delay: 300 * time.Millisecond}
	hooks := declare(t, "p", s.options()...)
	defer reconcile(t, hooks, api.start(t), newBundle(ca))()
	eventually(t, ready(hooks))
	api.mu.Lock()
	defer api.mu.Unlock()
	if diff := cmp.Diff([]string{"CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, api.written); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyDefinitionsAreRegisteredAtOnce fails with the limit that client-go has by default,
// 5 requests a second: it would take longer than eventually waits.
func TestManyDefinitionsAreRegisteredAtOnce(t *testing.T) {
	ca, _, _ := newCA(t, "localhost")
	var opts []registration.Option
	for i := range 200 {
		s := newShop(t, fmt.Sprintf("g%d.example.com", i))
		opts = append(opts, s.definitions(), registration.Conversion(fmt.Sprint("/convert-", i), convert(s)))
	}
	hooks := declare(t, "p", opts...)
	defer reconcile(t, hooks, (&slowAPI{}).start(t), newBundle(ca))()
	eventually(t, ready(hooks))
}
