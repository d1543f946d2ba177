package walkthrough

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/internal/controlplane"
)

// operatorUser is whom the operator is to the API server: the account of its Deployment.
const operatorUser = "system:serviceaccount:" + pizza.Namespace + ":" + pizza.Name

// Restaurant is a control plane with the pizza operator beside it.
type Restaurant struct {
	out        io.Writer
	kubectlBin string
	kubeconfig string

	operator         *exec.Cmd
	operatorLog      string
	operatorExited   chan struct{}
	url              string
	caBundle         []byte
	client           *http.Client
	dir              string
	operatorArgs     []string
	operatorBinary   string
	reviewVersion    string
	requestsAtSwitch map[string]float64
}

// Open prepares a restaurant on a control plane: certificates for the operator,
// and the user that its service account is. The operator, which binary is, starts
// when the definitions are registered. What is done is shown on out.
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
	certFile, keyFile, err := r.writeCertificate()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	r.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	r.operatorArgs = []string{
		"--kubeconfig=" + userConfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + certFile, "--tls-private-key-file=" + keyFile,
		"-v=1",
	}
	return r, nil
}

// Kubeconfig is the path of an administrator's configuration for kubectl.
func (r *Restaurant) Kubeconfig() string { return r.kubeconfig }

// writeCertificate makes the operator's certificate, with the address at which
// the API server calls it as its SAN, and a CA of its own.
func (r *Restaurant) writeCertificate() (certFile, keyFile string, err error) {
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return "", "", err
	}
	_, ca := pem.Decode(chain) // the leaf; what is left is its CA
	if len(ca) == 0 {
		return "", "", errors.New("the certificate came without its CA")
	}
	r.caBundle = ca
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	r.client = &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true},
	}
	certFile, keyFile = filepath.Join(r.dir, "tls.crt"), filepath.Join(r.dir, "tls.key")
	return certFile, keyFile, errors.Join(os.WriteFile(certFile, chain, 0o644), os.WriteFile(keyFile, key, 0o600))
}

// freePort returns a port on which nobody listens. Somebody may before the
// operator does; then the operator fails to start, and says why.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startOperator starts the operator and waits until it is ready.
func (r *Restaurant) startOperator(ctx context.Context) error {
	r.operatorLog = filepath.Join(r.dir, "operator.log")
	log, err := os.Create(r.operatorLog)
	if err != nil {
		return err
	}
	defer log.Close()
	r.operator = exec.Command(r.operatorBinary, r.operatorArgs...)
	r.operator.Stdout, r.operator.Stderr = log, log
	DieWithParent(r.operator)
	fmt.Fprintf(r.out, "$ pizza-operator --kubeconfig=… --secure-port=… --tls-cert-file=… --tls-private-key-file=… &\n")
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
		body, err := r.get("/readyz?verbose")
		if err == nil {
			fmt.Fprintf(r.out, "$ curl %s/readyz?verbose\n%s", r.url, indent(body))
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

// get reads a page of the operator.
func (r *Restaurant) get(path string) (string, error) {
	resp, err := r.client.Get(r.url + path)
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

// requests returns how many requests the operator has answered, by path.
func (r *Restaurant) requests() (map[string]float64, error) {
	body, err := r.get("/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, name := range []string{"crdkit_conversion_reviews_total", "crdkit_admission_requests_total"} {
		for _, m := range families[name].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "path" {
					counts[label.GetValue()] += m.GetCounter().GetValue()
				}
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
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("the operator did not stop within ten seconds"), r.operator.Process.Kill())
	}
	if code := r.operator.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the operator stopped with exit code %d:\n%s", code, r.operatorLogTail())
	}
	return nil
}

// endpoint is where the API server finds the operator.
func (r *Restaurant) endpoint() pizza.Endpoint {
	return pizza.Endpoint{URL: r.url, CABundle: r.caBundle, ReviewVersion: r.reviewVersion}
}
