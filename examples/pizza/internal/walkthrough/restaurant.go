package walkthrough

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/examples/internal/menu"
	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/test/controlplane"
)

// operatorUser is whom the operator is to the API server: the account of its Deployment.
const operatorUser = "system:serviceaccount:" + pizza.Namespace + ":" + pizza.Name

// secret holds the CA of the operator, in its namespace.
const (
	secret     = pizza.Name + "-webhook"
	secretPath = "/api/v1/namespaces/" + pizza.Namespace + "/secrets/" + secret
)

// Restaurant is a cluster with the pizza operator beside it.
type Restaurant struct {
	menu.Guest
	client           *rest.RESTClient // for what is not shown
	binary, dir      string
	port, many       int // many is how many pizzas are created at once
	args             []string
	operator         *show.Process // nil before it is started
	requestsAtSwitch map[string]float64
}

// Open prepares a restaurant on a cluster: the user that the operator's service
// account is, and a port for the operator, which binary is. Each command is shown on out.
func Open(cp show.Cluster, binary string, out io.Writer) (*Restaurant, error) {
	kubectl, err := show.KubectlOf(cp, out)
	if err != nil {
		return nil, err
	}
	// The embedded server learns of a change at once, and shares the processors with kubectl. A replica that
	// was stopped for three times the interval does not rotate the CA when the Secret is deleted.
	r := &Restaurant{Guest: menu.Guest{Kubectl: kubectl}, binary: binary, many: 500}
	pace := []string{"--ca-settle=2s", "--shutdown-delay=1s"} // a demo is short
	if _, embedded := cp.(*Embedded); embedded {
		r.many = 100
		pace = []string{"--ca-settle=300ms", "--shutdown-delay=100ms", "--drain-timeout=100ms"}
	}
	config := cp.Config()
	config.NegotiatedSerializer = scheme.Codecs
	if r.client, err = rest.UnversionedRESTClientFor(config); err != nil {
		return nil, err
	}
	userConfig, err := show.UserKubeconfig(cp, operatorUser)
	if err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp(cp.Dir(), "restaurant"); err != nil {
		return nil, err
	}
	if r.port, err = controlplane.FreePort(); err != nil {
		return nil, err
	}
	r.args = append([]string{
		"--kubeconfig=" + userConfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", r.port),
		"-v=1",
	}, pace...)
	return r, nil
}

// apply applies what the operator says that a cluster needs. The arguments are those of the endpoint.
func (r *Restaurant) apply(ctx context.Context, endpoint []string) error {
	fmt.Fprintf(r.Out, "$ pizza-operator manifests %s >all.yaml\n", show.Quote(endpoint))
	manifests, err := exec.CommandContext(ctx, r.binary, append([]string{"manifests"}, endpoint...)...).Output()
	if err != nil {
		return err
	}
	fmt.Fprintln(r.Out, "# The operator runs beside the cluster, so the API server finds it by another Service.")
	rest, err := without(manifests, "Service")
	if err != nil {
		return err
	}
	return r.Apply(ctx, rest, "rest.yaml")
}

// startOperator starts the operator and waits until it is ready.
func (r *Restaurant) startOperator(ctx context.Context, endpoint []string) (err error) {
	args := append(slices.Clone(r.args), endpoint...)
	fmt.Fprintf(r.Out, "$ pizza-operator --kubeconfig=… %s &\n", show.Quote(args[1:]))
	if r.operator, err = show.Start("the operator", filepath.Join(r.dir, "operator.log"), exec.Command(r.binary, args...)); err != nil {
		return err
	}
	return r.operator.Await(ctx, func() error {
		body, err := r.get(ctx, "/readyz?verbose")
		if err == nil {
			fmt.Fprintf(r.Out, "$ curl --cacert ca.crt --connect-to ::127.0.0.1:%d https://%s/readyz?verbose\n%s", r.port, host, show.Indent(body))
		}
		return err
	})
}

// host is the name by which the API server knows the operator.
const host = pizza.Name + "." + pizza.Namespace + ".svc"

// get reads a page of the operator, whose certificate must be of the CA in its Secret.
func (r *Restaurant) get(ctx context.Context, path string) (string, error) {
	ca, err := r.caBundle(ctx)
	if err != nil {
		return "", err
	}
	return show.Get(ctx, ca, host, r.port, path)
}

// caBundle returns what the Secret of the operator says whom to trust.
func (r *Restaurant) caBundle(ctx context.Context) ([]byte, error) {
	var s corev1.Secret
	err := r.read(ctx, &s, secretPath)
	return s.Data["ca.crt"], err
}

// read reads an object, or a list of objects, into a Go value, without a process of kubectl, which
// would take much longer. The steps read with kubectl all that they show.
func (r *Restaurant) read(ctx context.Context, into any, path string) error {
	text, err := r.client.Get().AbsPath(path).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return json.Unmarshal(text, into)
}

// requests returns how many requests the operator has answered, by path.
func (r *Restaurant) requests(ctx context.Context) (map[string]float64, error) {
	body, err := r.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, m := range families["pizza_operator_webhook_requests_total"].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "path" {
				counts[label.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	return counts, nil
}

// Close stops the operator, and returns an error if it does not stop within twenty seconds, or
// stopped with one.
func (r *Restaurant) Close() error {
	if r.operator == nil {
		return nil
	}
	return r.operator.Stop(20 * time.Second)
}
