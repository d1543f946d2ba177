package webhooktest

import (
	"encoding/base64"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// Register creates a webhook configuration of admissionregistration.k8s.io/v1, given as YAML without apiVersion. Each
// webhook has no side effects, gets v1 reviews, and is called at the URL of [Serve], to which its own
// clientConfig.url is appended. The API server calls it after a moment.
func Register(t testing.TB, config *rest.Config, url string, caBundle []byte, text string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	expect.NoError(t, err)
	u := testobj.Parse(t, text)
	u.SetAPIVersion("admissionregistration.k8s.io/v1")
	hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
	expect.NoError(t, err)
	for _, h := range hooks {
		hook := h.(map[string]any)
		path, _, _ := unstructured.NestedString(hook, "clientConfig", "url")
		hook["clientConfig"] = map[string]any{"url": url + path, "caBundle": base64.StdEncoding.EncodeToString(caBundle)}
		hook["sideEffects"], hook["admissionReviewVersions"] = "None", []any{"v1"}
	}
	u.Object["webhooks"] = hooks
	resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	_, err = client.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{})
	expect.NoError(t, err)
}
