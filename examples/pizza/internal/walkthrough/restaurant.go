package walkthrough

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/internal/controlplane"
)

// operatorUser is whom the operator is to the API server: the account of its Deployment.
const operatorUser = "system:serviceaccount:" + pizza.Namespace + ":" + pizza.Name

// secret holds the CA of the operator, in its namespace.
const secret = pizza.Name + "-webhook"

// Restaurant is a control plane with the pizza operator beside it.
type Restaurant struct {
	out        io.Writer
	kubectlBin string
	kubeconfig string

	operator         *exec.Cmd
	operatorLog      string
	operatorExited   chan struct{}
	port             int
	dir              string
	operatorArgs     []string
	operatorBinary   string
	requestsAtSwitch map[string]float64
}

// Open prepares a restaurant on a control plane: the user that the operator's service
// account is, and a port for the operator, which binary is. What is done is shown on out.
func Open(cp *controlplane.ControlPlane, binary string, out io.Writer) (*Restaurant, error) {
	r := &Restaurant{out: out, kubectlBin: cp.Kubectl(), operatorBinary: binary}
	var err error
	if r.kubeconfig, err = cp.Kubeconfig(cp.Config()); err != nil {
		return nil, err
	}
	user, err := cp.User(operatorUser)
	if err != nil {
		return nil, err
	}
	userConfig, err := cp.Kubeconfig(user)
	if err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp(cp.Dir(), "restaurant"); err != nil {
		return nil, err
	}
	if r.port, err = FreePort(); err != nil {
		return nil, err
	}
	r.operatorArgs = []string{
		"--kubeconfig=" + userConfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", r.port),
		fmt.Sprintf("--webhook-service-port=%d", r.port),
		"--ca-interval=1s", "--ca-settle=2s", "--shutdown-delay=1s", // a demo is short
		"-v=1",
	}
	return r, nil
}

// Kubeconfig is the path of an administrator's configuration for kubectl.
func (r *Restaurant) Kubeconfig() string { return r.kubeconfig }

// FreePort returns a port on which nobody listens. Somebody may before the
// operator does; then the operator fails to start, and says why.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startOperator starts the operator and waits until it is ready.
func (r *Restaurant) startOperator(ctx context.Context, args ...string) error {
	r.operatorLog = filepath.Join(r.dir, "operator.log")
	log, err := os.Create(r.operatorLog)
	if err != nil {
		return err
	}
	defer log.Close()
	args = append(slices.Clone(r.operatorArgs), args...)
	r.operator = exec.Command(r.operatorBinary, args...)
	r.operator.Stdout, r.operator.Stderr = log, log
	DieWithParent(r.operator)
	fmt.Fprintf(r.out, "$ pizza-operator --kubeconfig=… %s &\n", quoteAll(args[1:]))
	if err := r.operator.Start(); err != nil {
		return err
	}
	r.operatorExited = make(chan struct{})
	go func() {
		_ = r.operator.Wait() // the log has more to say than the exit code
		close(r.operatorExited)
	}()
	err = eventually(ctx, 30*time.Second, func() error {
		select {
		case <-r.operatorExited:
			return permanent{fmt.Errorf("the operator stopped:\n%s", r.operatorLogTail())}
		default:
		}
		body, err := r.get(ctx, "/readyz?verbose")
		if err == nil {
			fmt.Fprintf(r.out, "$ kubectl get secret -n %s %s -o 'jsonpath={.data.ca\\.crt}' | base64 -d >ca.crt\n", pizza.Namespace, secret)
			fmt.Fprintf(r.out, "$ curl --cacert ca.crt --connect-to ::127.0.0.1:%d https://%s/readyz?verbose\n%s", r.port, host, indent(body))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the operator is not ready: %w\n%s", err, r.operatorLogTail())
	}
	return nil
}

func (r *Restaurant) operatorLogTail() string {
	log, err := os.ReadFile(r.operatorLog)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4<<10):])
}

// host is the name by which the API server knows the operator.
const host = pizza.Name + "." + pizza.Namespace + ".svc"

// get reads a page of the operator, whose certificate must be of the CA in its Secret.
func (r *Restaurant) get(ctx context.Context, path string) (string, error) {
	ca, err := r.caBundle(ctx)
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: host}, ForceAttemptHTTP2: true, DisableKeepAlives: true},
	}
	resp, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d%s", r.port, path))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, bytes.TrimSpace(body))
	}
	return string(body), err
}

// caBundle returns what the Secret of the operator says whom to trust.
func (r *Restaurant) caBundle(ctx context.Context) ([]byte, error) {
	var s corev1.Secret
	if err := r.read(ctx, &s, "secret", "-n", pizza.Namespace, secret); err != nil {
		return nil, err
	}
	return s.Data["ca.crt"], nil
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

// Close stops the operator, and returns an error if it does not stop within ten
// seconds, or stopped with one.
func (r *Restaurant) Close() error {
	if r.operatorExited == nil {
		return nil
	}
	if err := r.operator.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-r.operatorExited:
	case <-time.After(20 * time.Second):
		return errors.Join(errors.New("the operator did not stop within twenty seconds"), r.operator.Process.Kill())
	}
	if code := r.operator.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the operator stopped with exit code %d:\n%s", code, r.operatorLogTail())
	}
	return nil
}
