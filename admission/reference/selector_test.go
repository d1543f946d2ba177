package reference_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/admission/reference"
)

func labelledSecret(namespace, name, app string) *corev1.Secret {
	s := secret(namespace, name)
	s.Labels = map[string]string{"app": app}
	return s
}

// bySelector is a cluster in which a secret has been made that the informer lacks.
func bySelector(asked *[]string) reference.Getter {
	var mu sync.Mutex
	return func(_ context.Context, namespace, selector string) error {
		mu.Lock()
		defer mu.Unlock()
		*asked = append(*asked, namespace+" "+selector)
		if namespace == "default" && selector == "app=new" {
			return nil
		}
		return apierrors.NewNotFound(secrets, selector)
	}
}

func TestSelectors_MustSelectSomething(t *testing.T) {
	var asked []string
	store := holding(labelledSecret("default", "a", "web"), labelledSecret("other", "b", "db"))
	known, err := reference.NewSelectorTarget(reference.Namespaced(secrets), store, bySelector(&asked))
	if err != nil {
		t.Fatal(err)
	}
	check := reference.Exists(known, toppingsOf)
	errs, err := check(t.Context(), pizza("x", "app=web", "app in (web,db)", "", "app=db", "app=new", "app!=web"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`spec.toppings[3].name: Not found: "app=db"`,
		`spec.toppings[5].name: Not found: "app!=web"`,
	}
	if diff := cmp.Diff(want, messages(errs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(asked) != 3 {
		t.Errorf("the API server is asked for %q", asked)
	}
	errs, err = check(t.Context(), pizza("x", "app in web"))
	if err != nil || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), `spec.toppings[0].name: Invalid value: "app in web": not a label selector: `) {
		t.Errorf("got %v and %v", errs, err)
	}
}

func TestSelectorTarget_FaultsAreErrors(t *testing.T) {
	var asked []string
	get := bySelector(&asked)
	if _, err := reference.NewSelectorTarget(reference.Namespaced(secrets), holding(), nil); err == nil || !strings.Contains(err.Error(), "the getter is nil") {
		t.Errorf("got %v", err)
	}
	known, err := reference.NewSelectorTarget(reference.Namespaced(secrets), holding(), get)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "the target has label selectors") {
			t.Errorf("got %v", err)
		}
	}()
	reference.Exists(known, toppingsOf, reference.Authorize(&reviews{}, ""))
}

func TestMetadataBySelector_ListsOne(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		if strings.Contains(r.URL.RawQuery, "web") {
			list.Items = make([]metav1.PartialObjectMetadata, 1)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	get := reference.MetadataBySelector(client, secrets.WithVersion("v1"))
	if err := get(t.Context(), "default", "app=web"); err != nil {
		t.Error(err)
	}
	if err := get(t.Context(), "", "app=db"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	want := []string{"/api/v1/namespaces/default/secrets?labelSelector=app%3Dweb&limit=1", "/api/v1/secrets?labelSelector=app%3Ddb&limit=1"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if reference.MetadataBySelector(nil, secrets.WithVersion("v1")) != nil {
		t.Error("there is a getter without a client")
	}
}
