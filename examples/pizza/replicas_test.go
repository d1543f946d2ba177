package pizza_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/balancer"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

const serviceAccount = "system:serviceaccount:" + pizza.Namespace + ":" + pizza.Name

// auditPolicy has the API server note each request of the operator.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + serviceAccount + `"]
- level: None
`

// auditEvent is what the test needs of audit.k8s.io/v1 Event.
type auditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Groups []string `json:"groups"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup, Resource, Subresource, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
	Stage    metav1.MicroTime `json:"stageTimestamp"`
}

// table is a cluster, with the operator's Service in front of its replicas.
type table struct {
	*controlplane.ControlPlane
	binary  string
	service *balancer.Balancer
	secrets typedcorev1.SecretInterface
}

// replica is a process of the operator.
type replica struct {
	*table
	name    string
	address string
	process *show.Process
}

// startReplica starts an operator as the service account of its Deployment. Its name is
// among the groups of its user, so that the audit log tells the replicas apart.
func (c *table) startReplica(t *testing.T, name string, args ...string) *replica {
	t.Helper()
	config, err := c.User(serviceAccount, "system:serviceaccounts", "system:serviceaccounts:"+pizza.Namespace, "replica:"+name)
	expect.NoError(t, err)
	kubeconfig, err := c.Kubeconfig(config)
	expect.NoError(t, err)
	port, err := controlplane.FreePort()
	expect.NoError(t, err)
	r := &replica{table: c, name: name, address: fmt.Sprintf("127.0.0.1:%d", port)}
	r.process, err = show.Start(name, filepath.Join(t.TempDir(), "operator.log"), exec.Command(c.binary, append([]string{
		"--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		fmt.Sprintf("--webhook-service-port=%d", c.service.Addr().(*net.TCPAddr).Port), "--shutdown-delay=500ms",
	}, args...)...))
	expect.NoError(t, err)
	c.service.Add(r.address)
	t.Cleanup(func() {
		r.process.Kill() // it may have exited
		if t.Failed() {
			t.Logf("%s:\n%s", name, r.process.Log())
		}
	})
	return r
}

// client returns a client that trusts the CA in the Secret, as the API server does.
func (r *replica) client(ctx context.Context) (*http.Client, error) {
	secret, err := r.secrets.Get(ctx, pizza.Name+"-webhook", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: pizza.Name + "." + pizza.Namespace + ".svc"},
		DisableKeepAlives: true,
	}}, nil
}

func (r *replica) get(path string) (string, error) {
	client, err := r.client(context.Background())
	if err != nil {
		return "", err
	}
	resp, err := client.Get("https://" + r.address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", r.name, resp.Status, body)
	}
	return string(body), err
}

// leads reports whether the replica's controller works.
func (r *replica) leads() (bool, error) {
	metrics, err := r.get("/metrics")
	if err != nil {
		return false, err
	}
	switch {
	case strings.Contains(metrics, "\npizza_operator_leading 1\n"):
		return true, nil
	case strings.Contains(metrics, "\npizza_operator_leading 0\n"):
		return false, nil
	}
	return false, fmt.Errorf("%s has no metric pizza_operator_leading", r.name)
}

// stop stops the replica in order.
func (r *replica) stop(t *testing.T) {
	t.Helper()
	expect.NoError(t, r.process.Stop(20*time.Second))
}

// apply applies YAML with kubectl, as an administrator.
func apply(t *testing.T, cp *controlplane.ControlPlane, manifests []byte, args ...string) string {
	t.Helper()
	output, err := kubectl(t, cp, manifests, append([]string{"apply", "--server-side", "-f", "-"}, args...)...)
	if err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, output)
	}
	return output
}

func kubectl(t *testing.T, cp *controlplane.ControlPlane, stdin []byte, args ...string) (string, error) {
	t.Helper()
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), cp.Kubectl(), append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// TestReplicas_OneWritesEachServes starts three replicas one after the other, stops the
// first leader in order, and kills the second. The audit log has the writes of each.
func TestReplicas_OneWritesEachServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, auditLog := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	expect.NoError(t, os.WriteFile(policy, []byte(auditPolicy), 0o600))
	cp := controlplane.ForTest(t, controlplane.APIServerArgs("--audit-policy-file="+policy, "--audit-log-path="+auditLog))
	c := setTheTable(t, cp, false)
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	ready := func(name, lease, deadline string) *replica {
		r := c.startReplica(t, name, "--leader-elect-lease-duration="+lease, "--leader-elect-renew-deadline="+deadline, "--leader-elect-retry-period=1s",
			"--ca-settle=2s")
		expect.Eventually(t, func() error { _, err := r.get("/readyz"); return err })
		return r
	}
	becomesLeader := func(r *replica) func() error {
		return func() error {
			if leads, err := r.leads(); err != nil || !leads {
				return fmt.Errorf("%s does not lead: %v", r.name, err)
			}
			return nil
		}
	}
	first := ready("first", "5m", "4m") // the second would wait too long for the end of this lease
	expect.Eventually(t, becomesLeader(first))
	c.serveTenPizzas(t)
	second := ready("second", "6s", "4s")

	// The price of tomatoes changes all the time, so that a leader always has to write.
	tomatoes := make(chan struct{})
	var market sync.WaitGroup
	market.Go(func() {
		for price := 1; ; price++ {
			select {
			case <-tomatoes:
				return
			case <-time.After(50 * time.Millisecond):
			}
			patch := fmt.Appendf(nil, `{"spec":{"cost":%d}}`, price%900)
			if _, err := client.Resource(toppings).Patch(t.Context(), "tomato", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	stopTomatoes := sync.OnceFunc(func() { close(tomatoes); market.Wait() })
	defer stopTomatoes()
	time.Sleep(3 * time.Second) // in which the second could take what is not its own

	for _, r := range []*replica{first, second} {
		if leads, err := r.leads(); err != nil || leads != (r == first) {
			t.Errorf("%s leads: %v, %v", r.name, leads, err)
		}
		if _, err := r.get("/healthz"); err != nil {
			t.Error(err)
		}
		deniesNails(t, r)
	}
	begin := time.Now()
	first.stop(t)
	expect.Eventually(t, becomesLeader(second))
	t.Logf("the second leads %s after the first was told to stop", time.Since(begin))

	third := ready("third", "6s", "4s")
	if leads, err := third.leads(); err != nil || leads {
		t.Errorf("the third leads: %v, %v", leads, err)
	}
	c.replaceTheCA(t)
	second.process.Kill()
	took := expect.Eventually(t, becomesLeader(third))
	t.Logf("the third leads %s after the second was killed", took)
	if took < 3*time.Second {
		t.Errorf("the lease of the second lasted only %s", took)
	}
	time.Sleep(time.Second)
	stopTomatoes()
	third.stop(t)

	events := readAudit(t, auditLog)
	writersFollowEachOther(t, events, "first", "second", "third")
	permissionsAreUsed(t, events)
}

var toppings = v1alpha1.GroupVersion.WithResource("toppings")

// setTheTable applies what the operator says that a cluster needs, with a Service that leads to
// this machine, or for webhooks at a URL.
func setTheTable(t *testing.T, cp *controlplane.ControlPlane, atURL bool) *table {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	c := &table{
		ControlPlane: cp,
		binary:       build(t),
		service:      balancer.New(listener),
		secrets:      clientset(t, cp.Config()).CoreV1().Secrets(pizza.Namespace),
	}
	t.Cleanup(c.service.Close)
	endpoint := pizza.InCluster()
	endpoint.ServicePort = int32(listener.Addr().(*net.TCPAddr).Port)
	if atURL {
		endpoint.URL = "https://" + listener.Addr().String()
	}
	manifests, err := pizza.Manifests("", endpoint, nil)
	expect.NoError(t, err)
	for _, o := range testobj.ParseAll(t, manifests) {
		if o.GetKind() == "Service" {
			// The API server resolves it to localhost (apiserver/pkg/util/proxy, ResolveCluster).
			o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		}
		text, err := o.MarshalJSON()
		expect.NoError(t, err)
		apply(t, cp, text)
		if o.GetKind() == "CustomResourceDefinition" {
			if output, err := kubectl(t, cp, nil, "wait", "--for=condition=Established", "--timeout=20s", "crd/"+o.GetName()); err != nil {
				t.Fatal(output)
			}
		}
	}
	return c
}

// serveTenPizzas creates pizzas in both versions.
func (c *table) serveTenPizzas(t *testing.T) {
	t.Helper()
	menu := "apiVersion: " + v1alpha1.GroupVersion.String() + "\nkind: Topping\nmetadata: {name: tomato}\nspec: {cost: 1}\n"
	for i := range 5 {
		menu += fmt.Sprintf("---\napiVersion: %s\nkind: Pizza\nmetadata: {name: a%d, namespace: default}\nspec: {toppings: [tomato]}\n", v1alpha1.GroupVersion, i)
		menu += fmt.Sprintf("---\napiVersion: %s\nkind: Pizza\nmetadata: {name: b%d, namespace: default}\nspec: {toppings: [{name: tomato}]}\n", v1beta1.GroupVersion, i)
	}
	apply(t, c.ControlPlane, []byte(menu))
}

// replaceTheCA deletes the Secret, and waits until the replicas serve with the next CA.
func (c *table) replaceTheCA(t *testing.T) {
	t.Helper()
	const name = pizza.Name + "-webhook"
	old, err := c.secrets.Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	expect.NoError(t, c.secrets.Delete(t.Context(), name, metav1.DeleteOptions{}))
	took := expect.Eventually(t, func() error {
		secret, err := c.secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && bytes.Equal(secret.Data["tls.crt"], old.Data["tls.crt"]) {
			err = errors.New("the CA is still the old one")
		}
		return err
	})
	t.Logf("the next CA signs %s after the Secret was deleted", took)
}

// deniesNails asks a replica for an admission that it can judge only with its informer,
// and a look at the API server.
func deniesNails(t *testing.T, r *replica) {
	t.Helper()
	object := `{"apiVersion":"` + v1beta1.GroupVersion.String() + `","kind":"Pizza","metadata":{"name":"p","namespace":"default"},"spec":{"toppings":[{"name":"tomato"},{"name":"nails"}]}}`
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","name":"p","namespace":"default",` +
		`"kind":{"group":"` + v1beta1.GroupVersion.Group + `","version":"v1beta1","kind":"Pizza"},"resource":{"group":"` + v1beta1.GroupVersion.Group + `","version":"v1beta1","resource":"pizzas"},"object":` + object + `}}`
	client, err := r.client(t.Context())
	expect.NoError(t, err)
	resp, err := client.Post("https://"+r.address+"/v1/validate/pizzas", "application/json", strings.NewReader(review))
	expect.NoError(t, err)
	defer resp.Body.Close()
	var answer admissionv1.AdmissionReview
	expect.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	if answer.Response == nil || answer.Response.Allowed || answer.Response.Result == nil || !strings.Contains(answer.Response.Result.Message, `spec.toppings[1].name: Not found: "nails"`) {
		t.Errorf("%s answers %+v", r.name, answer.Response)
	}
}

func readAudit(t *testing.T, file string) (events []auditEvent) {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	for line := range bytes.Lines(text) {
		var e auditEvent
		expect.NoError(t, json.Unmarshal(line, &e))
		events = append(events, e)
	}
	return events
}

// writersFollowEachOther checks that each replica wrote, and only after the one before
// had written for the last time.
func writersFollowEachOther(t *testing.T, events []auditEvent, names ...string) {
	t.Helper()
	type span struct {
		begin, end time.Time
		writes     int
	}
	spans := map[string]*span{}
	for _, e := range events {
		if e.ObjectRef.Resource != "pizzas" || slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			continue
		}
		name := "nobody"
		for _, group := range e.User.Groups {
			if after, ok := strings.CutPrefix(group, "replica:"); ok {
				name = after
			}
		}
		s := spans[name]
		if s == nil {
			s = &span{begin: e.Received.Time, end: e.Stage.Time}
			spans[name] = s
		}
		s.writes++
		if e.Received.Time.Before(s.begin) {
			s.begin = e.Received.Time
		}
		if e.Stage.After(s.end) {
			s.end = e.Stage.Time
		}
	}
	if len(spans) != len(names) {
		t.Errorf("there are %d writers, want %d", len(spans), len(names))
	}
	var before *span
	for _, name := range names {
		s := spans[name]
		if s == nil || s.writes < 10 {
			t.Fatalf("%s has hardly written: %+v", name, s)
		}
		t.Logf("%s wrote %d times, from %s to %s", name, s.writes, s.begin.Format("15:04:05.000"), s.end.Format("15:04:05.000"))
		if before != nil && !before.end.Before(s.begin) {
			t.Errorf("%s wrote at %s, when the one before wrote until %s", name, s.begin, before.end)
		}
		before = s
	}
}

// permissionsAreUsed checks that the roles of the manifests allow what the operator does,
// and nothing else.
func permissionsAreUsed(t *testing.T, events []auditEvent) {
	t.Helper()
	used := map[string]bool{}
	for _, e := range events {
		what := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		used[what+"."+e.ObjectRef.APIGroup] = true
		if e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s", what, e.ObjectRef.Name)
		}
	}
	granted := map[string]bool{}
	for _, rule := range grantedRules(t) {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				granted[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	// An informer lists where the API server cannot stream a list (reflector.go).
	for what := range granted {
		if strings.HasPrefix(what, "list ") {
			used[what] = true
		}
	}
	if diff := cmp.Diff(granted, used); diff != "" {
		t.Errorf("permissions (-granted +used):\n%s", diff)
	}
}

// grantedRules returns the rules of all roles in the manifests.
func grantedRules(t *testing.T) (rules []rbacv1.PolicyRule) {
	t.Helper()
	deployment, err := pizza.Deployment("")
	expect.NoError(t, err)
	for _, object := range testobj.ParseAll(t, deployment) {
		if kind := object.GetKind(); kind == "Role" || kind == "ClusterRole" {
			text, err := object.MarshalJSON()
			expect.NoError(t, err)
			var role rbacv1.Role // a ClusterRole has the same rules
			expect.NoError(t, json.Unmarshal(text, &role))
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}
