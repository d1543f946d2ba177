package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

// cluster is a real control plane, with what the tests of the pages need.
type cluster struct {
	*controlplane.ControlPlane
	kubernetes.Interface
	definitions apiextensions.Interface
	kubeconfig  string
}

func newCluster(t *testing.T, cp *controlplane.ControlPlane) *cluster {
	t.Helper()
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	return &cluster{cp, kubernetes.NewForConfigOrDie(cp.Config()), apiextensions.NewForConfigOrDie(cp.Config()), kubeconfig}
}

// run runs a command in a directory, with the kubectl of the control plane, and returns all
// that it has written. How it ended is for its output to say.
func (c *cluster) run(t testing.TB, dir, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir = dir
	// Without a cache of its own, kubectl would remember versions that are not served any more.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+t.TempDir(), "KUBECACHEDIR=", "LC_ALL=C",
		"PATH="+filepath.Dir(c.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	}
	return string(output)
}

// define creates a definition, or brings the one of its name to the same state, and waits
// until all of its versions are served.
func (c *cluster) define(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var want apiextensionsv1.CustomResourceDefinition
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), &want))
	all := c.definitions.ApiextensionsV1().CustomResourceDefinitions()
	_, err := all.Create(t.Context(), &want, metav1.CreateOptions{})
	expect.NoError(t, err)
	for _, v := range want.Spec.Versions {
		if v.Served {
			c.served(t, want.Spec.Group, v.Name, want.Spec.Names.Plural)
		}
	}
	crd, err := all.Get(t.Context(), want.Name, metav1.GetOptions{})
	expect.NoError(t, err)
	return crd
}

func (c *cluster) served(t testing.TB, group, version, plural string) {
	t.Helper()
	expect.Eventually(t, func() error {
		resources, err := c.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		if err != nil {
			return err
		}
		for _, r := range resources.APIResources {
			if r.Name == plural {
				return nil
			}
		}
		return fmt.Errorf("%s has no %s", version, plural)
	})
}

// patch changes a definition by a merge patch.
func (c *cluster) patch(t testing.TB, definition string, patch any, subresources ...string) {
	t.Helper()
	text, err := json.Marshal(patch)
	expect.NoError(t, err)
	_, err = c.definitions.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), definition, types.MergePatchType, text, metav1.PatchOptions{}, subresources...)
	expect.NoError(t, err)
}

// stored returns what etcd has of an object, through the gateway of etcd
// (etcd.io/docs/v3.6/dev-guide/api_grpc_gateway).
func (c *cluster) stored(t testing.TB, key string) string {
	t.Helper()
	etcd := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(c.Dir(), "etcd.sock"))
	}}}
	defer etcd.CloseIdleConnections()
	body, err := json.Marshal(map[string]any{"key": []byte("/registry/" + key)})
	expect.NoError(t, err)
	response, err := etcd.Post("http://etcd/v3/kv/range", "application/json", bytes.NewReader(body))
	expect.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	var out struct{ KVs []struct{ Value []byte } }
	if err := json.Unmarshal(text, &out); err != nil || len(out.KVs) != 1 {
		t.Fatalf("etcd has no %s: %s", key, text)
	}
	return string(out.KVs[0].Value)
}

// lines returns the lines of a text without their ends.
func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
