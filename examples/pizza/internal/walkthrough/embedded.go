package walkthrough

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
)

// Embedded is an API server in this process, of package apiservertest, that other processes reach at a
// port of 127.0.0.1. It implements show.Cluster. Requests need no credentials, and those of users
// are authorized by RBAC.
type Embedded struct {
	kubectl, dir string
	config       *rest.Config
	server       *http.Server
	end          context.CancelFunc
}

// StartEmbedded starts the server, and returns when it is ready. kubectl is the path of the binary
// with which the walkthrough sends its requests.
func StartEmbedded(kubectl string) (_ *Embedded, err error) {
	ctx, end := context.WithCancel(context.Background())
	e := &Embedded{kubectl: kubectl, end: end}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	if e.dir, err = os.MkdirTemp("", "crdkit-"); err != nil {
		return nil, err
	}
	handler, err := apiservertest.New(ctx, apiservertest.RBAC())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.config = &rest.Config{Host: "http://" + listener.Addr().String(), QPS: -1}
	e.server = &http.Server{Handler: handler}
	go func() { _ = e.server.Serve(listener) }() // until Stop
	return e, nil
}

// Config returns a new client configuration of an administrator.
func (e *Embedded) Config() *rest.Config { return rest.CopyConfig(e.config) }

// User returns a new client configuration of a user.
func (e *Embedded) User(name string, groups ...string) (*rest.Config, error) {
	config := e.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return config, nil
}

// Kubeconfig writes a kubeconfig file into Dir, and returns its path.
func (e *Embedded) Kubeconfig(config *rest.Config) (string, error) {
	return controlplane.WriteKubeconfig(e.dir, config)
}

// Kubectl returns the path of the kubectl binary.
func (e *Embedded) Kubectl() string { return e.kubectl }

// Dir returns a directory for files, which Stop removes.
func (e *Embedded) Dir() string { return e.dir }

// Stop ends the server and removes Dir.
func (e *Embedded) Stop() error {
	e.end()
	var err error
	if e.server != nil {
		err = e.server.Close()
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}
