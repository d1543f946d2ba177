package registration

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/report"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// Further certificates in a CA bundle stay for a while if another replica may have written them.
func TestInject_FurtherCertificates(t *testing.T) {
	mine, _, _ := webhooktest.SelfSigned(t, "mine")
	theirs, _, _ := webhooktest.SelfSigned(t, "theirs")
	both := slices.Concat(mine, theirs)
	owned := `[{"manager":"somebody","operation":"Update","apiVersion":"admissionregistration.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:webhooks":{"k:{\"name\":\"a.example.com\"}":{"f:clientConfig":{"f:caBundle":{}}}}}}]`
	for name, c := range map[string]struct {
		found     []byte
		managers  string
		last, now []byte // of this replica
		after     time.Duration
		want      []byte
	}{
		"just seen":              {found: both, now: mine, want: both},
		"seen after another":     {found: both, last: mine, now: mine, want: both},
		"seen for 29 seconds":    {found: both, now: mine, after: 29 * time.Second, want: both},
		"seen for 30 seconds":    {found: both, now: mine, after: 30 * time.Second, want: mine},
		"the own bundle shrinks": {found: both, last: both, now: mine, want: mine},
		"another writer's":       {found: both, managers: owned, now: mine, want: mine},
		"without a needed one":   {found: theirs, now: mine, want: mine},
		"with one too few":       {found: mine, now: both, want: both},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var settings settings
				URL("https://127.0.0.1:9443")(&settings)
				settings.endpoint.check(&settings)
				resource := admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
				obj := &unstructured.Unstructured{}
				expect.NoError(t, yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: pizza-operator, managedFields: %s}
webhooks: [{name: a.example.com, clientConfig: {url: "https://127.0.0.1:9443/a", caBundle: %q}}]
`, cmp.Or(c.managers, "[]"), base64.StdEncoding.EncodeToString(c.found)), &obj.Object))
				all := fake.NewSimpleDynamicClient(runtime.NewScheme(), obj)
				o := &object{kind: "ValidatingWebhookConfiguration", resource: resource, name: "pizza-operator"}
				o.changes = report.New(corev1.ObjectReference{Kind: o.kind, Name: o.name}, o.name, bundleInjected, bundleOverwritten)
				s := &objectState{
					object: o, webhooks: &Webhooks{name: o.name, endpoint: &settings.endpoint},
					all: all, client: all.Resource(resource), writes: rate.NewLimiter(rate.Every(writeInterval), writeBurst),
				}
				if c.last != nil {
					s.written = base64.StdEncoding.EncodeToString(c.last)
				}
				for _, wait := range []time.Duration{c.after, 0} {
					expect.NoError(t, s.sync(t.Context(), c.now))
					time.Sleep(wait)
				}
				s.changes.Wait()
				e := s.webhooks.entries(s.current)
				if len(e) != 1 || !bytes.Equal(e[0].caBundle(), c.want) {
					t.Errorf("got %s, want %s", e, c.want)
				}
			})
		})
	}
}
