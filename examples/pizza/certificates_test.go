package pizza_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// TestCertificates_FromFiles runs an operator outside of the cluster, whose
// certificates another program makes, and renews with another CA.
func TestCertificates_FromFiles(t *testing.T) {
	tier.VerifyOnly(t, "checks in a cluster what webhook/replica checks too")
	t.Parallel()
	cp := controlplane.ForTest(t)
	c := setTheTable(t, cp, true)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	client := &http.Client{Timeout: 10 * time.Second}
	renew := func() (chain []byte) {
		chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(certFile, chain, 0o600))
		expect.NoError(t, os.WriteFile(keyFile, key, 0o600))
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(chain)
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
		return chain
	}
	renew()
	r := c.startReplica(t, "files", "--webhook-url=https://"+c.service.Addr().String(),
		"--tls-cert-file="+certFile, "--tls-private-key-file="+keyFile, "--ca-file="+certFile)
	ready := func() error {
		resp, err := client.Get("https://" + r.address + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", resp.Status)
		}
		return nil
	}
	serves := func(name string) {
		t.Helper()
		expect.Eventually(t, func() error {
			nails := fmt.Sprintf("apiVersion: %s\nkind: Pizza\nmetadata: {name: %s, namespace: default}\nspec: {toppings: [nails]}\n", v1alpha1.GroupVersion, name)
			output, err := kubectl(t, cp, []byte(nails), "create", "-f", "-")
			if err == nil || !strings.Contains(output, `spec.toppings[0]: Not found: "nails"`) {
				return fmt.Errorf("a pizza with nails: %v: %s", err, output)
			}
			return nil
		})
	}
	expect.Eventually(t, ready)
	serves("a")

	renewed := renew()
	expect.Eventually(t, ready)
	expect.Eventually(t, func() error {
		configuration, err := clientset(t, cp.Config()).AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), pizza.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, w := range configuration.Webhooks {
			certs, err := cert.ParseCertsPEM(w.ClientConfig.CABundle)
			if err != nil {
				return err
			}
			want, err := cert.ParseCertsPEM(renewed)
			if err != nil {
				return err
			}
			for _, ca := range want {
				if !slices.ContainsFunc(certs, ca.Equal) {
					return fmt.Errorf("%s does not trust the CA that is renewed", w.Name)
				}
			}
			if url := *w.ClientConfig.URL; !strings.HasPrefix(url, "https://"+c.service.Addr().String()+"/v1/validate/") || w.ClientConfig.Service != nil {
				t.Fatalf("%s is at %s", w.Name, url)
			}
		}
		return nil
	})
	serves("b")
	output, err := kubectl(t, cp, nil, "get", "crd", "pizzas."+v1beta1.GroupVersion.Group, "-o", "jsonpath={.spec.conversion.webhook.clientConfig.url} {.spec.conversion.webhook.clientConfig.service}")
	expect.NoError(t, err)
	if diff := cmp.Diff("https://"+c.service.Addr().String()+"/v1/convert", strings.TrimSpace(output)); diff != "" {
		t.Errorf("the conversion (-want +got):\n%s", diff)
	}
	if _, err := c.secrets.Get(t.Context(), pizza.Name+"-webhook", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Secret that nobody needs: %v", err)
	}
	r.stop(t)
}
