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
	"strconv"
	"time"

	apiserver "github.com/crdkit/crdkit/examples/pizza-apiserver"
	"github.com/crdkit/crdkit/internal/controlplane"
)

const (
	// user is whom the server is to the kube-apiserver: its service account.
	user = "system:serviceaccount:" + apiserver.Namespace + ":" + apiserver.Name
	// host is the name by which the kube-apiserver knows it.
	host = apiserver.Name + "." + apiserver.Namespace + ".svc"
)

// Restaurant is a control plane with the pizza server beside it, and the server's etcd.
type Restaurant struct {
	out                    io.Writer
	kubectlBin, kubeconfig string
	etcdBin, serverBin     string
	dir, userConfig        string
	port                   int
	etcd, server           *process
}

// Open prepares a restaurant on a control plane that forwards requests
// (controlplane.Aggregation): the user that the server is, and a port for it, which binary
// is. What is done is shown on out.
func Open(cp *controlplane.ControlPlane, binary string, out io.Writer) (*Restaurant, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	r := &Restaurant{
		out: out, kubectlBin: cp.Kubectl(), serverBin: binary,
		etcdBin: filepath.Join(filepath.Dir(cp.Kubectl()), "etcd"),
	}
	if r.kubeconfig, err = cp.Kubeconfig(cp.Config()); err != nil {
		return nil, err
	}
	config, err := cp.User(user)
	if err != nil {
		return nil, err
	}
	if r.userConfig, err = cp.Kubeconfig(config); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp(cp.Dir(), "r"); err != nil { // the path of a socket is short
		return nil, err
	}
	r.port, err = freePort()
	return r, err
}

// Kubeconfig is the path of an administrator's configuration for kubectl.
func (r *Restaurant) Kubeconfig() string { return r.kubeconfig }

// freePort returns a port on which nobody listens. Somebody may before the server does; then
// it fails to start, and says why.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// StartServer gives the server its permissions, starts its etcd and the server itself, and
// registers it. It returns when the kube-apiserver forwards to it.
func (r *Restaurant) StartServer(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.permit, r.startEtcd, r.startServer, r.register} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// permit applies what the server says that it needs, but for what needs its certificate.
func (r *Restaurant) permit(ctx context.Context) error {
	fmt.Fprintln(r.out, "$ pizza-apiserver manifests >permissions.yaml")
	manifests, err := exec.CommandContext(ctx, r.serverBin, "manifests").Output()
	if err != nil {
		return err
	}
	file := filepath.Join(r.dir, "permissions.yaml")
	if err := os.WriteFile(file, manifests, 0o600); err != nil {
		return err
	}
	fmt.Fprintln(r.out, "$ kubectl apply -f permissions.yaml")
	output, err := r.run(ctx, "", "apply", "-f", file)
	fmt.Fprint(r.out, indent(output))
	if err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, output)
	}
	// No node is here to run a Deployment: the server runs beside, and the kube-apiserver
	// finds it by another Service.
	fmt.Fprintln(r.out, "# The server runs beside the cluster: its Service leads to localhost.")
	return r.succeed(ctx, "", []string{"patch", "service", "-n", apiserver.Namespace, apiserver.Name, "--type=merge",
		"-p", `{"spec":{"type":"ExternalName","externalName":"localhost","selector":null,"ports":null,"clusterIP":null,"clusterIPs":null}}`})
}

// socket is that of the server's etcd.
func (r *Restaurant) socket() string { return "unix://" + filepath.Join(r.dir, "etcd.sock") }

func (r *Restaurant) startEtcd(ctx context.Context) (err error) {
	fmt.Fprintln(r.out, "$ etcd --listen-client-urls=unix://etcd.sock … &")
	r.etcd, err = start("etcd", filepath.Join(r.dir, "etcd.log"), exec.Command(r.etcdBin,
		"--data-dir="+filepath.Join(r.dir, "data"),
		"--listen-client-urls="+r.socket(),
		"--advertise-client-urls=http://localhost:2379", // required, and used by nobody
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
	))
	if err != nil {
		return err
	}
	return r.etcd.await(ctx, func() error {
		conn, err := net.Dial("unix", filepath.Join(r.dir, "etcd.sock"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// certificate is the file with the certificate that the server makes for itself.
func (r *Restaurant) certificate() string { return filepath.Join(r.dir, "certs", "apiserver.crt") }

func (r *Restaurant) startServer(ctx context.Context) (err error) {
	args := []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(r.port),
		"--cert-dir=" + filepath.Join(r.dir, "certs"),
		"--etcd-servers=" + r.socket(),
	}
	fmt.Fprintf(r.out, "$ pizza-apiserver --etcd-servers=unix://etcd.sock %s … &\n", quoteAll(args[:2]))
	for _, flag := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
		args = append(args, "--"+flag+"="+r.userConfig)
	}
	cmd := exec.Command(r.serverBin, args...)
	cmd.Dir = r.dir
	if r.server, err = start("pizza-apiserver", filepath.Join(r.dir, "server.log"), cmd); err != nil {
		return err
	}
	return r.server.await(ctx, func() error {
		body, err := r.get(ctx, "/readyz?verbose")
		if err == nil {
			fmt.Fprintf(r.out, "$ curl --cacert certs/apiserver.crt --connect-to ::127.0.0.1:%d 'https://%s/readyz?verbose'\n%s", r.port, host, indent(body))
		}
		return err
	})
}

// get reads a page of the server itself.
func (r *Restaurant) get(ctx context.Context, path string) (string, error) {
	ca, err := os.ReadFile(r.certificate())
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: host}, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", r.port, path), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return string(body), err
}

// register tells the kube-apiserver about the server, and waits until it forwards to it.
func (r *Restaurant) register(ctx context.Context) error {
	port := strconv.Itoa(r.port)
	fmt.Fprintf(r.out, "$ pizza-apiserver manifests --ca-file=certs/apiserver.crt --service-port=%s >all.yaml\n", port)
	manifests, err := exec.CommandContext(ctx, r.serverBin, "manifests", "--ca-file="+r.certificate(), "--service-port="+port).Output()
	if err != nil {
		return err
	}
	file := filepath.Join(r.dir, "apiservices.yaml")
	if err := os.WriteFile(file, apiServices(manifests), 0o600); err != nil {
		return err
	}
	fmt.Fprintln(r.out, "$ kubectl apply -f all.yaml # all but the Service, which is here another")
	output, err := r.run(ctx, "", "apply", "-f", file)
	fmt.Fprint(r.out, indent(output))
	if err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, output)
	}
	if err := r.succeed(ctx, "", []string{"wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1alpha1." + group, "apiservice/v1beta1." + group}); err != nil {
		return err
	}
	// kubectl finds a version by the discovery of the kube-apiserver, which follows.
	return eventually(ctx, 30*time.Second, func() error {
		for _, resource := range []string{alphas, betas, "toppings"} {
			if output, err := r.run(ctx, "", "get", resource); err != nil {
				return fmt.Errorf("%w: %s", err, output)
			}
		}
		return nil
	})
}

// apiServices returns those of YAML documents that are APIServices.
func apiServices(manifests []byte) (services []byte) {
	for _, document := range bytes.SplitAfter(manifests, []byte("---\n")) {
		if bytes.Contains(document, []byte("kind: APIService\n")) {
			services = append(services, document...)
		}
	}
	return services
}

// Close stops the server and its etcd, in order.
func (r *Restaurant) Close() error {
	var errs []error
	for _, p := range []*process{r.server, r.etcd} {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}
	return errors.Join(errs...)
}
