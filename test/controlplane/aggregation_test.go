//go:build unix

package controlplane

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/test/expect"
)

// Aggregation publishes whom another server may trust.
// That it forwards requests is for examples/pizza-apiserver to show, which has a server.
func TestAggregation_PublishesCAs(t *testing.T) {
	cp := ForTest(t, Aggregation())
	client := kubernetes.NewForConfigOrDie(cp.Config())
	got := map[string]string{}
	expect.EventuallyTrue(t, "the CAs are published", func() bool {
		config, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		if err == nil {
			got = config.Data
		}
		return err == nil && got["requestheader-client-ca-file"] != ""
	})
	want := map[string]string{}
	for key, name := range map[string]string{"client-ca-file": "ca.crt", "requestheader-client-ca-file": "front-proxy-ca.crt"} {
		ca, err := os.ReadFile(cp.file(name))
		expect.NoError(t, err)
		want[key] = string(ca)
	}
	if want["client-ca-file"] == want["requestheader-client-ca-file"] {
		t.Error("a client certificate lets a client claim to be any user: both CAs are one")
	}
	want["requestheader-allowed-names"] = `["front-proxy-client"]`
	for key, text := range want {
		if diff := cmp.Diff(text, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}
