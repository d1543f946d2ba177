package crontab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/webhooktest"
	"github.com/crdkit/crdkit/schema/offline"
)

// api is the resource without a cluster, or on a real API server.
type api interface {
	create(version, object string) error
	get(version, name string) (*unstructured.Unstructured, error)
	patch(version, name, patch string) error
	delete(version, name string) error
}

// scenario writes a CronTab with a finalizer, and then fields that are nullable, a number or a
// string, and an object with a kind of its own, in both versions.
func scenario(t *testing.T, a api) {
	for name, test := range map[string]struct{ spec, want, fails string }{
		"default":    {`{}`, `{"timeZone":"Etc/UTC"}`, ""},
		"null":       {`{"timeZone":null}`, `{"timeZone":null}`, ""},
		"number":     {`{"maxUnavailable":3}`, `{"maxUnavailable":3,"timeZone":"Etc/UTC"}`, ""},
		"percentage": {`{"maxUnavailable":"50%"}`, `{"maxUnavailable":"50%","timeZone":"Etc/UTC"}`, ""},
		"job": {`{"job":{"apiVersion":"batch/v1","kind":"Job","metadata":{"generateName":"a-","more":1},"spec":{"any":[null]}}}`,
			`{"job":{"apiVersion":"batch/v1","kind":"Job","metadata":{"generateName":"a-"},"spec":{"any":[null]}},"timeZone":"Etc/UTC"}`, ""},
		"bool":     {`{"maxUnavailable":true}`, "", `[spec.maxUnavailable: Invalid value: "boolean": spec.maxUnavailable in body must be of type integer,string: "boolean", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
		"large":    {`{"maxUnavailable":11}`, "", `spec.maxUnavailable: Invalid value: 11: spec.maxUnavailable in body should be less than or equal to 10`},
		"half":     {`{"maxUnavailable":"half"}`, "", `spec.maxUnavailable: Invalid value: "half": spec.maxUnavailable in body should match '^(100|[1-9]?[0-9])%$'`},
		"bad-kind": {`{"job":{"apiVersion":"batch/v1","kind":"a b"}}`, "", `spec.job.kind: Invalid value: "a b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`},
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			name := name + "-" + version
			t.Run(name, func(t *testing.T) {
				var fields map[string]any
				decode(t, test.spec, &fields)
				fields["image"] = "backup"
				err := a.create(version, text(t, map[string]any{"apiVersion": "stable.example.com/" + version, "kind": "CronTab",
					"metadata": map[string]any{"name": name, "namespace": "default", "finalizers": []any{"stable.example.com/unschedule"}}, "spec": fields}))
				if test.fails != "" {
					if want := fmt.Sprintf("CronTab.stable.example.com %q is invalid: %s", name, test.fails); err == nil || err.Error() != want {
						t.Errorf("got %v, want %s", err, want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var want map[string]any
				decode(t, test.want, &want)
				want["image"], want["cronSpec"], want["replicas"] = "backup", "5 0 * * *", 1.0
				for _, version := range []string{"v1", "v1beta1"} {
					got, err := a.get(version, name)
					if err != nil {
						t.Fatal(err)
					}
					var spec map[string]any
					decode(t, text(t, got.Object["spec"]), &spec)
					if diff := cmp.Diff(want, spec); diff != "" {
						t.Errorf("%s (-want +got):\n%s", version, diff)
					}
				}
				deletionWaits(t, a, name)
			})
		}
	}
}

// deletionWaits deletes a CronTab in one version, and removes its finalizer in the other.
func deletionWaits(t *testing.T, a api, name string) {
	t.Helper()
	if err := a.delete("v1", name); err != nil {
		t.Fatal(err)
	}
	got, err := a.get("v1beta1", name)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetDeletionTimestamp() == nil || len(got.GetFinalizers()) != 1 {
		t.Errorf("it waits for no finalizer: %v", got.Object["metadata"])
	}
	if err := a.patch("v1beta1", name, `{"metadata":{"finalizers":null}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := a.get("v1", name); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

type withoutCluster struct {
	ctx context.Context
	*offline.Resource
}

func (c withoutCluster) create(version, object string) error {
	_, err := c.Create(c.ctx, version, []byte(object))
	return err
}

func (c withoutCluster) get(version, name string) (*unstructured.Unstructured, error) {
	out, err := c.Get(c.ctx, version, "default", name)
	if err != nil {
		return nil, err
	}
	return out.Unstructured()
}

func (c withoutCluster) patch(version, name, patch string) error {
	_, err := c.Patch(c.ctx, version, "default", name, types.MergePatchType, []byte(patch))
	return err
}

func (c withoutCluster) delete(version, name string) error {
	_, err := c.Delete(c.ctx, version, "default", name)
	return err
}

func TestFeatures_WithoutCluster(t *testing.T) {
	scenario(t, withoutCluster{t.Context(), cronTabs()})
}

type realServer struct {
	ctx    context.Context
	client dynamic.Interface
}

func (s realServer) of(version string) dynamic.ResourceInterface {
	return s.client.Resource(runtimeschema.GroupVersionResource{Group: "stable.example.com", Version: version, Resource: "crontabs"}).Namespace("default")
}

func (s realServer) create(version, object string) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(object)); err != nil {
		return err
	}
	_, err := s.of(version).Create(s.ctx, u, metav1.CreateOptions{})
	return err
}

func (s realServer) get(version, name string) (*unstructured.Unstructured, error) {
	return s.of(version).Get(s.ctx, name, metav1.GetOptions{})
}

func (s realServer) patch(version, name, patch string) error {
	_, err := s.of(version).Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (s realServer) delete(version, name string) error {
	return s.of(version).Delete(s.ctx, name, metav1.DeleteOptions{})
}

func TestFeatures_OnARealAPIServer(t *testing.T) {
	cp := controlplane.Shared(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(read(t, "config/crd/stable.example.com_crontabs.yaml"), crd); err != nil {
		t.Fatal(err)
	}
	url, ca := webhooktest.Serve(t, conversion.NewHandler(registry(t)))
	crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca}
	config := rest.CopyConfig(cp.Config())
	config.WarningHandlerWithContext = rest.NoWarnings{} // v1beta1 is deprecated
	definitions := apiextensionsclient.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	if _, err := definitions.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server := realServer{t.Context(), dynamic.NewForConfigOrDie(config)}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, v1 := server.of("v1").List(t.Context(), metav1.ListOptions{})
		_, v1beta1 := server.of("v1beta1").List(t.Context(), metav1.ListOptions{})
		err := errors.Join(v1, v1beta1)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	scenario(t, server)
}
