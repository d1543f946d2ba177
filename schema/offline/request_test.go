package offline_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
)

func TestEachRequestMayHaveItsUser(t *testing.T) {
	onlyAda := answer(func(request map[string]any) map[string]any {
		return map[string]any{"allowed": request["userInfo"].(map[string]any)["username"] == "ada", "status": map[string]any{"reason": "Forbidden", "code": 403}}
	})
	r := newGadgets(t, offline.Validate(onlyAda))
	ada := offline.As(authenticationv1.UserInfo{Username: "ada"})
	object := []byte(gadget("v1", "a", "", `{"size":1}`))
	merge := []byte(`{"spec":{"size":2}}`)
	if _, err := r.Create(t.Context(), "v1", object); !apierrors.IsForbidden(err) {
		t.Errorf("create by the usual user: %v", err)
	}
	if _, err := r.Create(t.Context(), "v1", object, ada); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Patch(t.Context(), "v1", "", "a", types.MergePatchType, merge); !apierrors.IsForbidden(err) {
		t.Errorf("patch by the usual user: %v", err)
	}
	if _, err := r.Patch(t.Context(), "v1", "", "a", types.MergePatchType, merge, ada); err != nil {
		t.Errorf("patch by ada: %v", err)
	}
	if _, err := r.Delete(t.Context(), "v1", "", "a"); !apierrors.IsForbidden(err) {
		t.Errorf("delete by the usual user: %v", err)
	}
	if _, err := r.Delete(t.Context(), "v1", "", "a", ada); err != nil {
		t.Errorf("delete by ada: %v", err)
	}
}

// Time is not real here.
func TestARequestEndsAfter34Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		r := newGadgets(t, offline.Convert(hangs))
		if _, err := r.Create(context.Background(), "v1", []byte(gadget("v1", "a", "", ""))); err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]func() (*schema.Result, error){
			"create": func() (*schema.Result, error) {
				return r.Create(context.Background(), "v2", []byte(gadget("v2", "b", "", "")))
			},
			"patch": func() (*schema.Result, error) {
				return r.Patch(context.Background(), "v2", "", "a", types.MergePatchType, []byte("{}"))
			},
			"delete": func() (*schema.Result, error) { return r.Delete(context.Background(), "v2", "", "a") },
			"get":    func() (*schema.Result, error) { return r.Get(context.Background(), "v2", "", "a") },
			"list":   func() (*schema.Result, error) { return r.List(context.Background(), "v2", "") },
		} {
			start := time.Now()
			_, err := f()
			want := "Timeout: request did not complete within requested timeout - context deadline exceeded"
			if !apierrors.IsTimeout(err) || err.Error() != want || time.Since(start) != 34*time.Second {
				t.Errorf("%s: after %s: %v", name, time.Since(start), err)
			}
		}
	})
}

func TestACancelledRequestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newGadgets(t, offline.Mutate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })))
	_, err := r.Create(ctx, "v1", []byte(gadget("v1", "a", "", "")))
	if !apierrors.IsTimeout(err) {
		t.Error(err)
	}
}

// Time is not real here, so that the request does not run out of it.
func TestAWebhookThatWritesTheObjectItIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *offline.Resource
		var busy atomic.Bool
		var n atomic.Int64
		r = newGadgets(t, offline.Validate(answer(func(request map[string]any) map[string]any {
			if request["operation"] == "UPDATE" && busy.CompareAndSwap(false, true) {
				defer busy.Store(false)
				patch, err := json.Marshal(map[string]any{"spec": map[string]any{"size": n.Add(1) + 1}})
				must(err)
				if _, err := r.Patch(context.Background(), "v1", "", "a", types.MergePatchType, patch); err != nil {
					t.Error(err)
				}
			}
			return map[string]any{"allowed": true}
		})))
		if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", `{"size":1}`))); err != nil {
			t.Fatal(err)
		}
		_, err := r.Patch(context.Background(), "v1", "", "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`))
		want := `offline: gadgets.example.com "default/a" has changed during each of 500 attempts: a webhook may write the very object that it is asked about`
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestAWebhookWithoutRulesIsAskedAbout(t *testing.T) {
	var asked []string
	note := func(kind string) http.Handler {
		return answer(func(request map[string]any) map[string]any {
			asked = append(asked, kind+" "+request["operation"].(string))
			return map[string]any{"allowed": true}
		})
	}
	r := newGadgets(t, offline.Mutate(note("mutate")), offline.Validate(note("validate")))
	for _, f := range []func() (*schema.Result, error){
		func() (*schema.Result, error) {
			return r.Create(t.Context(), "v2", []byte(gadget("v2", "a", "", "")))
		},
		func() (*schema.Result, error) {
			return r.Patch(t.Context(), "v1", "", "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`))
		},
		func() (*schema.Result, error) { return r.Delete(t.Context(), "v1", "", "a") },
	} {
		if _, err := f(); err != nil {
			t.Fatal(err)
		}
	}
	want := "mutate CREATE, validate CREATE, mutate UPDATE, validate UPDATE, validate DELETE"
	if got := strings.Join(asked, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestARequestNamesAnObject(t *testing.T) {
	r := newGadgets(t)
	for name, f := range map[string]func() (*schema.Result, error){
		"patch": func() (*schema.Result, error) {
			return r.Patch(t.Context(), "v1", "", "", types.MergePatchType, []byte("{}"))
		},
		"get":    func() (*schema.Result, error) { return r.Get(t.Context(), "v1", "", "") },
		"delete": func() (*schema.Result, error) { return r.Delete(t.Context(), "v1", "", "") },
	} {
		if out, err := f(); out == nil || err == nil || err.Error() != "offline: the request does not name an object" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnErrorOfThePatchHasTheServersNames(t *testing.T) {
	r := newGadgets(t)
	if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", ""))); err != nil {
		t.Fatal(err)
	}
	for patch, want := range map[string]string{
		`{}`:          "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
		`[1]`:         "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
		`[{"op":{}}]`: "error decoding patch: json: cannot unmarshal object into Go struct field jsonPatchOp.op of type string",
	} {
		if _, err := r.Patch(t.Context(), "v1", "", "a", types.JSONPatchType, []byte(patch)); !apierrors.IsBadRequest(err) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", patch, err, want)
		}
	}
	var status apierrors.APIStatus
	if _, err := r.Patch(t.Context(), "v1", "", "a", types.MergePatchType, make([]byte, 4<<20)); !errors.As(err, &status) || status.Status().Code != 413 {
		t.Errorf("a patch that is too large: %v", err)
	}
}

func TestTheUserOfAResourceIsAClusterAdmin(t *testing.T) {
	var name string
	r := newGadgets(t, offline.Validate(answer(func(request map[string]any) map[string]any {
		name = request["userInfo"].(map[string]any)["username"].(string)
		return map[string]any{"allowed": true}
	}), admissionregistrationv1.ValidatingWebhook{Name: "who.example.com"}))
	if _, err := r.Create(t.Context(), "v1", []byte(gadget("v1", "a", "", ""))); err != nil || name != "kubernetes-admin" {
		t.Errorf("%s, %v", name, err)
	}
}

func TestAClusterHasNoNamespaces(t *testing.T) {
	r, err := offline.New(define(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Get(t.Context(), "v1", "x", "a")
	want := "offline: gadgets are in no namespace, and the request is for x: the server could not find the requested resource (get gadgets.example.com)"
	if !apierrors.IsNotFound(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
