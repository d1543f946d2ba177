package crontab_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// scenario writes a CronTab with a finalizer, and then fields that are nullable, a number or a
// string, and an object with a kind of its own, in both versions.
func scenario(t *testing.T, config *rest.Config) {
	config.WarningHandlerWithContext = rest.NoWarnings{} // v1beta1 is deprecated
	client := dynamic.NewForConfigOrDie(config)
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
				cronTab := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "stable.example.com/" + version, "kind": "CronTab", "spec": decode(t, test.spec)}}
				cronTab.SetName(name)
				cronTab.SetFinalizers([]string{"stable.example.com/unschedule"})
				cronTab.Object["spec"].(map[string]any)["image"] = "backup"
				_, err := of(client, version).Create(t.Context(), cronTab, metav1.CreateOptions{})
				if test.fails != "" {
					// Kubernetes 1.33 writes null as text.
					if want := fmt.Sprintf("CronTab.stable.example.com %q is invalid: %s", name, test.fails); err == nil || strings.ReplaceAll(err.Error(), `"null"`, "null") != want {
						t.Errorf("got %v, want %s", err, want)
					}
					return
				}
				expect.NoError(t, err)
				want := decode(t, test.want)
				want["image"], want["cronSpec"], want["replicas"] = "backup", "5 0 * * *", 1.0
				for _, version := range []string{"v1", "v1beta1"} {
					got, err := of(client, version).Get(t.Context(), name, metav1.GetOptions{})
					expect.NoError(t, err)
					spec, err := json.Marshal(got.Object["spec"])
					expect.NoError(t, err)
					if diff := cmp.Diff(want, decode(t, string(spec))); diff != "" {
						t.Errorf("%s (-want +got):\n%s", version, diff)
					}
				}
				deletionWaits(t, client, name)
			})
		}
	}
}

// deletionWaits deletes a CronTab in one version, and removes its finalizer in the other.
func deletionWaits(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	expect.NoError(t, of(client, "v1").Delete(t.Context(), name, metav1.DeleteOptions{}))
	got, err := of(client, "v1beta1").Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	if got.GetDeletionTimestamp() == nil || len(got.GetFinalizers()) != 1 {
		t.Errorf("it waits for no finalizer: %v", got.Object["metadata"])
	}
	_, err = of(client, "v1beta1").Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	expect.NoError(t, err)
	if _, err := of(client, "v1").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func decode(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	expect.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}

func TestFeatures_WithoutCluster(t *testing.T) {
	scenario(t, apiservertest.Start(t, cronTabs()...).Config())
}

func TestFeatures_OnARealAPIServer(t *testing.T) {
	config := rest.CopyConfig(controlplane.Shared(t).Config())
	crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, string(read(t, "config/crd/stable.example.com_crontabs.yaml")))
	url, ca := webhooktest.Serve(t, conversion.NewHandler(registry(t)))
	crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca}
	definitions := apiextensionsclient.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	_, err := definitions.Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)
	client := dynamic.NewForConfigOrDie(config)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, v1 := of(client, "v1").List(t.Context(), metav1.ListOptions{})
		_, v1beta1 := of(client, "v1beta1").List(t.Context(), metav1.ListOptions{})
		err := errors.Join(v1, v1beta1)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	scenario(t, config)
}
