package walkthrough

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/crdkit/crdkit/examples/internal/menu"
	"github.com/crdkit/crdkit/examples/internal/show"
	apiserver "github.com/crdkit/crdkit/examples/pizza-apiserver"
	"github.com/crdkit/crdkit/test/controlplane"
)

// user is whom the server is to the kube-apiserver: its service account.
const user = "system:serviceaccount:" + apiserver.Namespace + ":" + apiserver.Name

// Restaurant is a control plane with the pizza server beside it, and the server's etcd.
type Restaurant struct {
	menu.Guest
	etcdBinary, binary string
	dir, userConfig    string
	port               int
	etcd, server       *show.Process // nil before they are started
}

// Open prepares a restaurant on a control plane that forwards requests
// (controlplane.Aggregation): the user that the server is, and a port for it, which binary
// is. Each command is shown on out.
func Open(cp show.Cluster, binary string, out io.Writer) (*Restaurant, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	kubectl, err := show.KubectlOf(cp, out)
	if err != nil {
		return nil, err
	}
	r := &Restaurant{Guest: menu.Guest{Kubectl: kubectl}, binary: binary, etcdBinary: filepath.Join(filepath.Dir(cp.Kubectl()), "etcd")}
	if r.userConfig, err = show.UserKubeconfig(cp, user); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp(cp.Dir(), "r"); err != nil { // the path of a socket is short
		return nil, err
	}
	r.port, err = controlplane.FreePort()
	return r, err
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

// permit applies the manifests that the server prints, except those that need its certificate.
func (r *Restaurant) permit(ctx context.Context) error {
	fmt.Fprintln(r.Out, "$ pizza-apiserver manifests >permissions.yaml")
	manifests, err := exec.CommandContext(ctx, r.binary, "manifests").Output()
	if err != nil {
		return err
	}
	if err := r.Apply(ctx, manifests, "permissions.yaml"); err != nil {
		return err
	}
	// No node is here to run a Deployment: the server runs beside, and the kube-apiserver
	// finds it by another Service.
	fmt.Fprintln(r.Out, "# The server runs beside the cluster: its Service leads to localhost.")
	return r.Succeed(ctx, "", []string{"patch", "service", "-n", apiserver.Namespace, apiserver.Name, "--type=merge",
		"-p", `{"spec":{"type":"ExternalName","externalName":"localhost","selector":null,"ports":null,"clusterIP":null,"clusterIPs":null}}`})
}

// socket is that of the server's etcd.
func (r *Restaurant) socket() string { return "unix://" + filepath.Join(r.dir, "etcd.sock") }

func (r *Restaurant) startEtcd(context.Context) (err error) {
	fmt.Fprintln(r.Out, "$ etcd --listen-client-urls=unix://etcd.sock … &")
	r.etcd, err = show.Start("etcd", filepath.Join(r.dir, "etcd.log"), exec.Command(r.etcdBinary,
		"--data-dir="+filepath.Join(r.dir, "data"),
		"--listen-client-urls="+r.socket(),
		"--advertise-client-urls=http://localhost:2379", // required, and not used
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
	))
	return err // the server waits for it
}

// certificate is the file with the certificate that the server makes for itself.
func (r *Restaurant) certificate() string { return filepath.Join(r.dir, "certs", "apiserver.crt") }

func (r *Restaurant) startServer(ctx context.Context) (err error) {
	args := []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(r.port),
		"--cert-dir=" + filepath.Join(r.dir, "certs"),
		"--etcd-servers=" + r.socket(),
	}
	fmt.Fprintf(r.Out, "$ pizza-apiserver --etcd-servers=unix://etcd.sock %s … &\n", show.Quote(args[:2]))
	for _, flag := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
		args = append(args, "--"+flag+"="+r.userConfig)
	}
	cmd := exec.Command(r.binary, args...)
	cmd.Dir = r.dir
	if r.server, err = show.Start("pizza-apiserver", filepath.Join(r.dir, "server.log"), cmd); err != nil {
		return err
	}
	return r.server.Await(ctx, func() error {
		ca, err := os.ReadFile(r.certificate())
		if err != nil {
			return err
		}
		body, err := show.Get(ctx, ca, apiserver.Host, r.port, "/readyz?verbose")
		if err == nil {
			fmt.Fprintf(r.Out, "$ curl --cacert certs/apiserver.crt --connect-to ::127.0.0.1:%d 'https://%s/readyz?verbose'\n%s", r.port, apiserver.Host, show.Indent(body))
		}
		return err
	})
}

// register tells the kube-apiserver about the server, and waits until it forwards to it.
func (r *Restaurant) register(ctx context.Context) error {
	port := strconv.Itoa(r.port)
	fmt.Fprintf(r.Out, "$ pizza-apiserver manifests --ca-file=certs/apiserver.crt --service-port=%s >all.yaml\n", port)
	manifests, err := exec.CommandContext(ctx, r.binary, "manifests", "--ca-file="+r.certificate(), "--service-port="+port).Output()
	if err != nil {
		return err
	}
	if err := r.Apply(ctx, apiServices(manifests), "all.yaml # all but the Service, which is here another"); err != nil {
		return err
	}
	if err := r.Succeed(ctx, "", []string{"wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1alpha1." + menu.Group, "apiservice/v1beta1." + menu.Group}); err != nil {
		return err
	}
	// kubectl finds a version by the discovery of the kube-apiserver, which follows.
	return show.Eventually(ctx, 2*time.Minute, func() error {
		for _, resource := range []string{menu.Alphas, menu.Betas, "toppings"} {
			if err := r.Try(ctx, "", "get", resource); err != nil {
				return err
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

// Close stops the server in order, and ends its etcd, which is no longer needed.
func (r *Restaurant) Close() (err error) {
	if r.server != nil {
		err = r.stopServer()
	}
	if r.etcd != nil {
		r.etcd.Kill()
	}
	return err
}

func (r *Restaurant) stopServer() error { return r.server.Stop(20 * time.Second) }
