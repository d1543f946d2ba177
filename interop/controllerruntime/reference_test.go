package controllerruntime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/interop/controllerruntime"
	"github.com/crdkit/crdkit/test/expect"
)

var (
	podResource    = schema.GroupResource{Resource: "pods"}
	secretResource = schema.GroupResource{Resource: "secrets"}
)

// cluster answers as an API server with secrets and pods, which do not change. Of
// every pod, the name is that of its secret.
type cluster struct {
	objects []client.ObjectKey

	mu      sync.Mutex
	asked   []string                 // for single objects, and reviews
	watches map[string]chan struct{} // by path; closed to end the watch
}

// endWatch ends the watch of a path.
func (c *cluster) endWatch(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.watches[path])
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, body string) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
	if r.Method == http.MethodPost {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			answer(http.StatusBadRequest, "{}")
			return
		}
		answer(http.StatusCreated, fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":%t}}`, review.Spec.User == "ada"))
		return
	}
	if r.URL.Query().Has("watch") {
		if r.URL.Query().Has("sendInitialEvents") {
			answer(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid"}`) // then it lists
			return
		}
		ended := make(chan struct{})
		c.mu.Lock()
		if c.watches == nil {
			c.watches = map[string]chan struct{}{}
		}
		c.watches[r.URL.Path] = ended
		c.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-ended:
		}
		return
	}
	var namespace, resource, name string
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	if parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if resource = parts[0]; len(parts) > 1 {
		name = parts[1]
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, namespace+"/"+name)
		if !slices.Contains(c.objects, client.ObjectKey{Namespace: namespace, Name: name}) {
			answer(http.StatusNotFound, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","details":{"name":%q}}`, name))
			return
		}
		answer(http.StatusOK, fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":%q,"name":%q}}`, namespace, name))
		return
	}
	kind := map[string]string{"secrets": "Secret", "pods": "Pod"}[resource]
	var items []string
	for _, key := range c.objects {
		if namespace == "" || namespace == key.Namespace {
			items = append(items, fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"namespace":%q,"name":%q}}`, kind, key.Namespace, key.Name))
		}
	}
	answer(http.StatusOK, fmt.Sprintf(`{"apiVersion":"v1","kind":"%sList","metadata":{"resourceVersion":"1"},"items":[%s]}`, kind, strings.Join(items, ",")))
}

func connect(t *testing.T, c *cluster) (*rest.Config, meta.RESTMapper) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	return &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, mapper
}

func ofKind[T client.Object](obj T, kind string) T {
	obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return obj
}

// sameName says that an object names the secret of its own name, in the namespaces.
func sameName[T client.Object](namespaces ...string) func(T) []reference.Ref {
	return func(obj T) (refs []reference.Ref) {
		for _, namespace := range namespaces {
			refs = append(refs, reference.Ref{Namespace: namespace, Name: obj.GetName()})
		}
		return refs
	}
}

func serves[P, S client.Object](t *testing.T, pod P, secret S, namespaces ...string) {
	objects := &cluster{objects: []client.ObjectKey{{Namespace: "a", Name: "tls"}, {Namespace: "b", Name: "tls"}, {Namespace: "c", Name: "tls"}}}
	config, mapper := connect(t, objects)
	opts := cache.Options{Scheme: scheme.Scheme, Mapper: mapper, HTTPClient: http.DefaultClient, NewInformer: reference.NewInformer}
	for _, namespace := range namespaces {
		if opts.DefaultNamespaces == nil {
			opts.DefaultNamespaces = map[string]cache.Config{}
		}
		opts.DefaultNamespaces[namespace] = cache.Config{}
	}
	c, err := cache.New(config, opts)
	expect.NoError(t, err)
	live, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper})
	expect.NoError(t, err)
	secrets, err := controllerruntime.Informer(t.Context(), c, secret)
	expect.NoError(t, err)
	known, err := reference.NewTarget(reference.Namespaced(secretResource), secrets, controllerruntime.Getter(live, corev1.SchemeGroupVersion.WithKind("Secret")))
	expect.NoError(t, err)
	pods, err := controllerruntime.Informer(t.Context(), c, pod)
	expect.NoError(t, err)
	podsOf, err := reference.NewReferrers(podResource, pods, reference.Namespaced(secretResource), sameName[P](""))
	expect.NoError(t, err)
	if known.Ready(nil) == nil || podsOf.Ready(nil) == nil {
		t.Error("they have synced before they were started")
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	expect.EventuallyTrue(t, "they have synced", func() bool { return known.Ready(nil) == nil && podsOf.Ready(nil) == nil })

	// The secret is in a, b and c; what the cache does not watch is read.
	pod.SetName("tls")
	pod.SetNamespace("a")
	anywhere := reference.CrossNamespace(func(context.Context, string, toolscache.ObjectName) (bool, error) { return true, nil })
	errs, err := reference.Exists(known, sameName[P]("a", "b", "c", "d"), anywhere)(t.Context(), pod)
	if len(errs) != 1 || err != nil {
		t.Errorf("got %v and %v, want that d/tls is not found", errs, err)
	}
	want := []string{"d/tls"}
	if len(namespaces) > 0 {
		want = []string{"c/tls", "d/tls"}
	}
	slices.Sort(objects.asked)
	if diff := cmp.Diff(want, objects.asked); diff != "" {
		t.Errorf("live reads (-want +got):\n%s", diff)
	}
	// A broken watch is noticed, also of one namespace among several.
	path := "/api/v1/secrets"
	if len(namespaces) > 0 {
		path = "/api/v1/namespaces/b/secrets"
	}
	objects.endWatch(path)
	expect.EventuallyTrue(t, "the watch is known to be broken", func() bool { return known.Ready(nil) != nil })
	expect.EventuallyTrue(t, "the watch is back", func() bool { return known.Ready(nil) == nil })
	unused := reference.NotReferenced[S](podsOf)
	for namespace, used := range map[string]bool{"a": true, "b": true, "c": len(namespaces) == 0, "d": false} {
		secret.SetName("tls")
		secret.SetNamespace(namespace)
		_, err := unused(t.Context(), secret)
		if used != apierrors.IsForbidden(err) || used && !strings.HasSuffix(err.Error(), "referenced by pods: "+namespace+"/tls") {
			t.Errorf("%s: got %v", namespace, err)
		}
	}
}

// A cache serves both directions.
func TestInformer_Cache(t *testing.T) {
	for name, namespaces := range map[string][]string{"all namespaces": nil, "two namespaces": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Run("typed", func(t *testing.T) {
				serves(t, ofKind(&corev1.Pod{}, "Pod"), ofKind(&corev1.Secret{}, "Secret"), namespaces...)
			})
			t.Run("unstructured", func(t *testing.T) {
				serves(t, ofKind(&unstructured.Unstructured{}, "Pod"), ofKind(&unstructured.Unstructured{}, "Secret"), namespaces...)
			})
			t.Run("metadata-only", func(t *testing.T) {
				serves(t, ofKind(&metav1.PartialObjectMetadata{}, "Pod"), ofKind(&metav1.PartialObjectMetadata{}, "Secret"), namespaces...)
			})
		})
	}
}

// A cache that does not use reference.NewInformer is refused.
func TestInformer_UnwatchedCache(t *testing.T) {
	config, mapper := connect(t, &cluster{})
	c, err := cache.New(config, cache.Options{Scheme: scheme.Scheme, Mapper: mapper, HTTPClient: http.DefaultClient})
	expect.NoError(t, err)
	secrets, err := controllerruntime.Informer(t.Context(), c, &corev1.Secret{})
	expect.NoError(t, err)
	_, err = reference.NewTarget(reference.Namespaced(secretResource), secrets, func(context.Context, string, string) error { return nil })
	expect.ErrorContains(t, err, "create it with reference.NewInformer")
}

// A type that the cache does not know is an error.
func TestInformer_UnknownType(t *testing.T) {
	config, mapper := connect(t, &cluster{})
	c, err := cache.New(config, cache.Options{Scheme: scheme.Scheme, Mapper: mapper, HTTPClient: http.DefaultClient})
	expect.NoError(t, err)
	if _, err := controllerruntime.Informer(t.Context(), c, &Hub{}); err == nil || !strings.HasPrefix(err.Error(), "controllerruntime: the informer of *controllerruntime_test.Hub: ") {
		t.Errorf("got %v", err)
	}
	if _, err := controllerruntime.Informer(t.Context(), nil, nil); err == nil {
		t.Error("no cache, but no error")
	}
}

// A client asks for permissions.
func TestAccessReviews_Client(t *testing.T) {
	config, mapper := connect(t, &cluster{})
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper})
	expect.NoError(t, err)
	for user, want := range map[string]bool{"ada": true, "bob": false} {
		review, err := controllerruntime.CreateAccessReview(c)(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user}}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != want {
			t.Errorf("%s: got %v and %v", user, review, err)
		}
	}
}

// A manager's cache, its API reader and its client are all that is needed.
func ExampleInformer() {
	setUp := func(ctx context.Context, c cache.Cache, apiReader client.Reader, writer client.Client) (*reference.Target, reference.Option, error) {
		secrets, err := controllerruntime.Informer(ctx, c, &corev1.Secret{})
		if err != nil {
			return nil, nil, err
		}
		known, err := reference.NewTarget(reference.Namespaced(secretResource), secrets,
			controllerruntime.Getter(apiReader, corev1.SchemeGroupVersion.WithKind("Secret")))
		return known, reference.Authorize(controllerruntime.CreateAccessReview(writer), "get"), err
	}
	_, _, err := setUp(context.Background(), nil, nil, nil)
	fmt.Println(err)
	// Output: controllerruntime: the cache or the object is nil
}
