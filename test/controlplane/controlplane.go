package controlplane

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

const (
	startTimeout = 3 * time.Minute
	stopGrace    = 5 * time.Second
)

// ControlPlane is a running etcd and kube-apiserver. Its methods are safe for
// concurrent use.
type ControlPlane struct {
	assets string // the folder of the binaries
	args   []string

	aggregation bool

	dir       string
	ca        *authority
	endpoint  *rest.Config // without credentials
	admin     *rest.Config
	watchdog  *watchdog
	etcd      *process
	apiserver *process
	version   release
	stop      func() error
}

// Option changes how Start starts a control plane.
type Option func(*ControlPlane)

// APIServerArgs adds command line flags for the API server after those that
// Start gives. Of a flag that takes one value, the last counts.
func APIServerArgs(args ...string) Option {
	return func(cp *ControlPlane) { cp.args = append(cp.args, args...) }
}

// Aggregation lets the API server forward the requests for an APIService to another
// server: it shows that server a client certificate of a CA of its own, and publishes this
// CA, and the one of the clients, in the ConfigMap extension-apiserver-authentication of
// kube-system, where the other server looks for them (apiserver/pkg/server/options,
// DelegatingAuthenticationOptions).
func Aggregation() Option {
	return func(cp *ControlPlane) { cp.aggregation = true }
}

// Start starts a control plane and returns when it is ready: /readyz says ok,
// and the namespace default exists. The context bounds the start alone, to three
// minutes if it has no deadline; the control plane runs until Stop.
//
// The error matches ErrNoBinaries if there is nothing to start. If a process
// failed, it names that process and carries the tail of its log.
func Start(ctx context.Context, opts ...Option) (*ControlPlane, error) {
	cp := &ControlPlane{}
	for _, opt := range opts {
		opt(cp)
	}
	cp.stop = sync.OnceValue(cp.shutdown)
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	if err := cp.start(ctx); err != nil {
		_ = cp.stop() // would say the same again
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	return cp, nil
}

// Config returns a new client configuration for an administrator, a member of
// the group system:masters. It has no client-side rate limit.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// User returns a new client configuration for the named user, who may do only
// what RBAC grants to that name, to the groups, and to system:authenticated. The
// error is that of the random source, if it fails.
func (cp *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	crt, key, err := cp.ca.issue(cert.Config{
		CommonName:   name,
		Organization: groups,
		Usages:       []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	cfg := rest.CopyConfig(cp.endpoint)
	cfg.CertData, cfg.KeyData = crt, key
	return cfg, err
}

// Kubectl returns the path of the kubectl binary.
func (cp *ControlPlane) Kubectl() string { return filepath.Join(cp.assets, kubectlName) }

// Dir returns the directory that holds the data, certificates and logs. Stop
// removes it.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Stop stops the API server and then etcd, and removes Dir. When it returns,
// after seconds at most, nothing is left behind. Its error says which process had
// ended before and why, or what could not be removed. Further calls return the
// same.
func (cp *ControlPlane) Stop() error { return cp.stop() }

func (cp *ControlPlane) start(ctx context.Context) (err error) {
	if cp.assets, err = findAssets(); err != nil {
		return err
	}
	if cp.ca, err = newAuthority(); err != nil {
		return err
	}
	// TMPDIR may be relative; the socket's URL and the watchdog may not.
	tmp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return err
	}
	if cp.dir, err = os.MkdirTemp(tmp, "crdkit-"); err != nil {
		return err
	}
	if cp.watchdog, err = newWatchdog(cp.dir); err != nil {
		return errors.Join(err, os.Remove(cp.dir))
	}
	if err = cp.ca.writeFiles(cp.dir); err != nil {
		return err
	}
	if cp.aggregation {
		args, err := writeFrontProxy(cp.dir)
		if err != nil {
			return err
		}
		cp.args = append(args, cp.args...)
	}
	if err = cp.startEtcd(ctx); err != nil {
		return err
	}
	// Another process may take the port between its choice and the server's bind.
	for range 5 {
		if err = cp.choosePort(); err == nil {
			err = cp.StartAPIServer(ctx)
		}
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return err
}

// choosePort sets the address of the API server, and the credentials for it.
func (cp *ControlPlane) choosePort() error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	cp.endpoint = &rest.Config{
		Host:            "https://127.0.0.1:" + strconv.Itoa(port),
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca.pem()},
		QPS:             -1,
	}
	cp.admin, err = cp.User("admin", "system:masters")
	return err
}

// startEtcd has etcd serve a Unix socket, so there is no port to lose.
func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	// etcd would say only that an argument is invalid if the path has more than 107 bytes (unix(7)).
	socket, err := net.Listen("unix", cp.file("etcd.sock"))
	if err != nil {
		return fmt.Errorf("TMPDIR is %s, expected a short path on a file system with sockets: %w", os.TempDir(), err)
	}
	socket.Close()
	cp.etcd, err = cp.run(etcdName,
		"--data-dir="+cp.file("data"),
		"--listen-client-urls=unix://"+cp.file("etcd.sock"),
		"--advertise-client-urls=http://localhost:2379", // required, and not used
		"--listen-peer-urls=http://127.0.0.1:0",         // no peer will ever call
		"--unsafe-no-fsync",
	)
	if err != nil {
		return err
	}
	return cp.etcd.await(ctx, func() error {
		conn, err := net.Dial("unix", cp.file("etcd.sock"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// StopAPIServer stops the API server and leaves etcd running, for tests of what clients do in the
// meantime. [ControlPlane.StartAPIServer] starts it again.
func (cp *ControlPlane) StopAPIServer() error { return cp.apiserver.stop(stopGrace) }

// StartAPIServer starts the API server, and returns when it is ready. After
// [ControlPlane.StopAPIServer], it has the same address and the same objects.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	probe := cp.Config()
	probe.NegotiatedSerializer = scheme.Codecs
	client, err := rest.UnversionedRESTClientFor(probe)
	if err != nil {
		return err
	}
	cp.apiserver, err = cp.run(apiserverName, append([]string{
		"--etcd-servers=unix://" + cp.file("etcd.sock"),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		// Since 1.37 the others refuse a loopback address (pkg/controlplane/instance.go).
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strings.TrimPrefix(cp.endpoint.Host, "https://127.0.0.1:"),
		"--tls-cert-file=" + cp.file("apiserver.crt"),
		"--tls-private-key-file=" + cp.file("apiserver.key"),
		"--client-ca-file=" + cp.file("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + cp.endpoint.Host,
		"--service-account-key-file=" + cp.file("service-account.key"),
		"--service-account-signing-key-file=" + cp.file("service-account.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged",
		// It refuses Pods whose account the controller manager has not made.
		"--disable-admission-plugins=ServiceAccount",
		// By default open watches hold a stopping server for a minute.
		"--shutdown-watch-termination-grace-period=1s",
	}, cp.args...)...)
	if err != nil {
		return err
	}
	err = cp.apiserver.await(ctx, func() error {
		for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
			if _, err := client.Get().AbsPath(path).Timeout(5 * time.Second).DoRaw(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	cp.version, err = releaseOf(ctx, client)
	return err
}

func (cp *ControlPlane) shutdown() error {
	var errs []error
	for _, p := range []*process{cp.apiserver, cp.etcd} {
		if p != nil {
			errs = append(errs, p.stop(stopGrace))
		}
	}
	if cp.watchdog != nil {
		errs = append(errs, cp.watchdog.release())
	}
	return errors.Join(errs...)
}

// file returns the path of a file in Dir.
func (cp *ControlPlane) file(name string) string { return filepath.Join(cp.dir, name) }

// FreePort returns a port of 127.0.0.1 on which no process listens. It is below those that the system
// gives to connections, and to listeners that ask for any port, so it stays free until the caller listens
// on it, also a second time.
func FreePort() (port int, err error) {
	for range 20 {
		port = 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}
