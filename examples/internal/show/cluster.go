package show

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/controlplane"
)

// Cluster is an API server on which a walkthrough runs.
type Cluster interface {
	// Config returns a client configuration of an administrator.
	Config() *rest.Config
	// User returns a client configuration of a user.
	User(name string, groups ...string) (*rest.Config, error)
	// Kubeconfig writes a client configuration into a file in Dir, and returns its path.
	Kubeconfig(config *rest.Config) (string, error)
	// Kubectl returns the path of a kubectl binary.
	Kubectl() string
	// Dir returns a directory for files, which Stop removes.
	Dir() string
	// Stop ends the server.
	Stop() error
}

// KubectlOf returns the kubectl of a cluster's administrator, and shows its commands on out.
func KubectlOf(c Cluster, out io.Writer) (Kubectl, error) {
	kubeconfig, err := c.Kubeconfig(c.Config())
	return Kubectl{Path: c.Kubectl(), Kubeconfig: kubeconfig, Out: out}, err
}

// UserKubeconfig returns the path of a kubeconfig file of a user of a cluster.
func UserKubeconfig(c Cluster, user string) (string, error) {
	config, err := c.User(user)
	if err != nil {
		return "", err
	}
	return c.Kubeconfig(config)
}

// ControlPlane returns a function that starts etcd and kube-apiserver.
func ControlPlane(options ...controlplane.Option) func(context.Context) (Cluster, error) {
	return func(ctx context.Context) (Cluster, error) {
		fmt.Println("Starting etcd and kube-apiserver …")
		return controlplane.Start(ctx, options...)
	}
}
