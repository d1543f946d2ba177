package docs_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/admission"
	admissionmetrics "github.com/crdkit/crdkit/admission/metrics"
	"github.com/crdkit/crdkit/conversion"
	conversionmetrics "github.com/crdkit/crdkit/conversion/metrics"
	"github.com/crdkit/crdkit/conversion/migrate"
	migratemetrics "github.com/crdkit/crdkit/conversion/migrate/metrics"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/webhook"
	webhookauthority "github.com/crdkit/crdkit/webhook/authority"
	webhookmetrics "github.com/crdkit/crdkit/webhook/metrics"
	"github.com/crdkit/crdkit/webhook/replica"
)

const production = "running-in-production.md"

func TestProduction_CodeIsCompiled(t *testing.T) {
	mdtest.Read(t, production).GoIsIn(t, "../examples/pizza")
}

// TestProduction_Commands runs the page's commands in a cluster with the pizza operator.
func TestProduction_Commands(t *testing.T) {
	t.Parallel()
	p := mdtest.Read(t, production)
	c := newCluster(t, controlplane.ForTest(t))
	c.SkipIfOlder(t, "the page shows its words")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	endpoint := pizza.Endpoint{Namespace: pizza.Namespace, URL: "https://" + listener.Addr().String(), ReviewVersions: []string{"v1"}, APIServers: []string{"10.0.0.0/28"}}
	manifests, err := pizza.Manifests("", endpoint, nil)
	expect.NoError(t, err)
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "all.yaml"), manifests, 0o600))
	c.run(t, dir, "kubectl apply --server-side -f all.yaml")

	ended := make(chan error, 1)
	ctx := klog.NewContext(t.Context(), logr.Discard()) // what it misses while it is uninstalled
	fast := replica.Authority(webhookauthority.PropagationDelay(time.Second))
	go func() { ended <- pizza.Run(ctx, c.Config(), listener, endpoint, pizza.Replica(fast)) }()
	t.Cleanup(func() { expect.NoError(t, <-ended) })
	pizzaYAML := "apiVersion: restaurant.programming-kubernetes.info/v1alpha1\nkind: Pizza\nmetadata: {name: margherita, namespace: default}\nspec: {toppings: []}\n"
	for _, topping := range []string{"tomato", "mozzarella", "salami"} { // the defaults
		pizzaYAML = "apiVersion: restaurant.programming-kubernetes.info/v1alpha1\nkind: Topping\nmetadata: {name: " + topping + "}\nspec: {cost: 1}\n---\n" + pizzaYAML
	}
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "pizza.yaml"), []byte(pizzaYAML), 0o600))
	expect.Eventually(t, func() error {
		if out := c.run(t, dir, "kubectl apply -f pizza.yaml"); !strings.Contains(out, "/margherita created") {
			return fmt.Errorf("the pizza is not created: %s", out)
		}
		return nil
	})
	play := func(title string) {
		s := &stage{TB: t, cluster: c, page: p, section: p.Section(t, title), dir: dir, updates: &updates{}}
		s.files(s.section)
		for range s.section.BlocksOf("console") {
			s.shows()
		}
	}

	trusted := func(want int) (cas []*x509.Certificate) {
		expect.Eventually(t, func() error {
			secret, err := c.CoreV1().Secrets(pizza.Namespace).Get(t.Context(), pizza.Name+"-webhook", metav1.GetOptions{})
			if err != nil {
				return err
			}
			cas, err = cert.ParseCertsPEM(secret.Data["ca.crt"])
			if err == nil && len(cas) != want {
				err = fmt.Errorf("the bundle has %d CAs, want %d", len(cas), want)
			}
			return err
		})
		return cas
	}

	leaked := trusted(1)
	play("Limit a stolen token")
	play("Replace a leaked CA key")
	if kept := trusted(1)[0]; slices.ContainsFunc(leaked, kept.Equal) {
		t.Errorf("the bundle still has %s", kept.Subject)
	}
	c.run(t, dir, "kubectl create namespace monitoring")
	play("Scrape the operator")
	play("NetworkPolicy")
	play("Uninstalling")
	if out := c.run(t, dir, "kubectl get crd,mutatingwebhookconfiguration,validatingwebhookconfiguration -o name"); strings.Contains(out, "pizza") {
		t.Errorf("still there: %s", out)
	}
}

// ruleFile is what Prometheus reads alerts from.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

var (
	selector = regexp.MustCompile(`\b((?:crdkit|apiserver)_\w+)(?:\{(\w+)="(\w+)"\})?`)
	grouping = regexp.MustCompile(` by \(([\w, ]+)\)`)
)

// TestProduction_AlertsNameMetrics checks that each alert is about a metric, labels and a label
// value that exist, in crdkit or in a real API server.
func TestProduction_AlertsNameMetrics(t *testing.T) {
	t.Parallel()
	c := newCluster(t, controlplane.Shared(t))
	known := ownMetrics(t) + serverMetrics(t, c)
	var all ruleFile
	expect.NoError(t, yaml.UnmarshalStrict(read(t, "../examples/pizza/config/prometheus/alerts.yaml"), &all))
	if len(all.Groups) == 0 {
		t.Fatal("the file has no groups")
	}
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			matches := selector.FindAllStringSubmatch(r.Expr, -1)
			if len(matches) != 1 || r.Annotations["summary"] == "" {
				t.Fatalf("%s: %d metrics in %q, summary %q; want one metric and a summary", r.Alert, len(matches), r.Expr, r.Annotations["summary"])
			}
			metric, label, value := matches[0][1], matches[0][2], matches[0][3]
			lines := slices.DeleteFunc(strings.Split(known, "\n"), func(line string) bool {
				return !strings.HasPrefix(line, metric) || value != "" && !strings.Contains(line, fmt.Sprintf("%s=%q", label, value))
			})
			if len(lines) == 0 {
				t.Errorf("%s: no metric %s with a value %q", r.Alert, metric, value)
				continue
			}
			by := grouping.FindStringSubmatch(r.Expr)
			for _, l := range strings.Split(strings.Join(by[min(1, len(by)):], ""), ", ") {
				if l != "" && !regexp.MustCompile(`[{,]`+l+`=`).MatchString(lines[0]) {
					t.Errorf("%s: the metric has no label %s: %s", r.Alert, l, lines[0])
				}
			}
		}
	}
}

// ownMetrics returns what Prometheus reads from an operator whose calls fail.
func ownMetrics(t *testing.T) string {
	t.Helper()
	r := prometheus.NewRegistry()
	observeConversion, err := conversionmetrics.Prometheus(r)
	expect.NoError(t, err)
	observeAdmission, err := admissionmetrics.Prometheus(r)
	expect.NoError(t, err)
	observeMigration, err := migratemetrics.Prometheus(r)
	expect.NoError(t, err)
	expect.NoError(t, webhookmetrics.Prometheus(r, status))
	const review = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"example.com/v1",` +
		`"objects":[{"apiVersion":"example.com/v1beta1","kind":"Backup","metadata":{"name":"a"},"spec":{"target":1}}]}}`
	for _, h := range []http.Handler{
		conversion.NewHandler(registry(t), observeConversion),
		admission.NewHandler(runtime.NewScheme(), observeAdmission("default"), admission.Mutate(func(context.Context, *unstructured.Unstructured) error { return nil })),
	} {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(review)).WithContext(klog.NewContext(t.Context(), logr.Discard()))
		request.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), request)
	}
	observeMigration("backups.example.com")(migrate.Progress{})
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// status is that of a replica before it has certificates.
var status = webhook.Status{
	Certificates: certificates{},
	CABundle:     func() []byte { return nil },
	Differences: func(yield func(kind, name, field string)) {
		yield("CustomResourceDefinition", "backups.example.com", "spec.conversion.strategy")
	},
	Changes: func(yield func(kind, name, reason string, total int)) {
		yield("Secret", "backup-operator-webhook", "UnknownCA", 0)
		yield("CustomResourceDefinition", "backups.example.com", "CABundleOverwritten", 0)
	},
}

type certificates struct{}

func (certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }

// serverMetrics returns the metrics of an API server that has called a conversion webhook and two
// admission webhooks, none of which is there.
func serverMetrics(t *testing.T, c *cluster) string {
	t.Helper()
	url := fmt.Sprintf("https://127.0.0.1:%d/", closedPort(t))
	const group = "production.example.com"
	crd := c.define(t, strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: alerts.GROUP}
spec:
  group: GROUP
  names: {plural: alerts, singular: alert, kind: Alert}
  scope: Cluster
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, "GROUP", group))
	alerts := dynamic.NewForConfigOrDie(c.Config()).Resource(schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "alerts"})
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1beta1", "kind": "Alert", "metadata": map[string]any{"name": name}}}
	}
	_, err := alerts.Create(t.Context(), object("a"), metav1.CreateOptions{})
	expect.NoError(t, err)
	c.patch(t, crd.Name, map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{"url": url},
	}}}})
	webhook := func(name string, policy admissionregistrationv1.FailurePolicyType) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name + "." + group, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url}, FailurePolicy: &policy,
			Rules: rules(group, "v1beta1", "alerts", create), SideEffects: new(noneOfEffect), AdmissionReviewVersions: []string{"v1"},
		}
	}
	_, err = c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhook("fail", admissionregistrationv1.Fail), webhook("ignore", admissionregistrationv1.Ignore)},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	var text string
	expect.Eventually(t, func() error {
		_, _ = alerts.Get(t.Context(), "a", metav1.GetOptions{})
		_, _ = alerts.Create(t.Context(), object("b"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		out, err := c.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		text = string(out)
		for _, want := range []string{"conversion_webhook_request_total{", `rejection_count{error_type="calling_webhook_error",name="fail.` + group, `fail_open_count{name="ignore.` + group} {
			if err == nil && !strings.Contains(text, want) {
				err = fmt.Errorf("the API server has no metric %s", want)
			}
		}
		return err
	})
	return text
}
