package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/balancer"
	"github.com/crdkit/crdkit/test/controlplane"
)

const (
	namespace  = "pizza-system"
	name       = "pizza-operator"
	secretName = "pizza-operator-webhook"
)

// restaurant is a control plane with what the operator's manifests say, and a balancer in the
// place of the Service.
type restaurant struct {
	cp        *controlplane.ControlPlane
	client    dynamic.Interface
	typed     kubernetes.Interface
	balancer  *balancer.Balancer
	operators []*operator
	binary    string
	next      bool // the release that is deployed is the next one

	mu       sync.Mutex
	foreigns map[string]bool // the CA bundles that were put in the place of the right ones
}

func (r *restaurant) putForeign(pem []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foreigns[string(pem)] = true
}

func (r *restaurant) foreign(pem []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.foreigns[string(pem)]
}

// open prepares it all, and starts two replicas.
func open(ctx context.Context, cp *controlplane.ControlPlane, binary string, flags []string) (_ *restaurant, err error) {
	r := &restaurant{cp: cp, binary: binary, foreigns: map[string]bool{}}
	if r.client, err = dynamic.NewForConfig(cp.Config()); err != nil {
		return nil, err
	}
	config := cp.Config()
	config.WarningHandler = rest.NoWarnings{} // that a corrupted Secret is corrupted
	if r.typed, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.balancer = balancer.New(listener)
	if err := r.install(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	user, err := cp.User("system:serviceaccount:" + namespace + ":" + name)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	kubeconfig, err := cp.Kubeconfig(user)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	for _, id := range []string{"A", "B"} {
		port, err := controlplane.FreePort()
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		o := &operator{
			name: id, binary: binary, addr: fmt.Sprintf("127.0.0.1:%d", port), logFile: filepath.Join(cp.Dir(), "operator-"+id+".log"),
			base: append([]string{"--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port)}, flags...),
		}
		o.args = r.release(o.base)
		if err := o.start(); err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.operators = append(r.operators, o)
		r.balancer.Add(o.addr)
	}
	for _, o := range r.operators {
		if err := o.await(ctx); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, r.menu(ctx)
}

// release returns arguments with those of the release that is deployed. The next one has a rule
// more: it is asked about toppings that are created and changed.
func (r *restaurant) release(args []string) []string {
	args = append(slices.Clone(args), fmt.Sprintf("--webhook-service-port=%d", r.balancer.Addr().(*net.TCPAddr).Port))
	if r.next {
		args = append(args, "--no-free-toppings")
	}
	return args
}

// install applies the operator's own manifests. In the place of its Service is one that the
// API server resolves to the balancer (apiserver/pkg/util/proxy, ResolveCluster).
func (r *restaurant) install(ctx context.Context) error {
	if err := r.apply(ctx); err != nil {
		return err
	}
	_, err := r.typed.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	return err
}

// apply applies the manifests of the release, except for the Service.
func (r *restaurant) apply(ctx context.Context) error {
	manifests, err := exec.CommandContext(ctx, r.binary, append([]string{"manifests"}, r.release(nil)...)...).Output()
	if err != nil {
		return fmt.Errorf("the operator's manifests: %w", err)
	}
	var kept bytes.Buffer
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		var obj unstructured.Unstructured
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if obj.GetKind() == "Service" || obj.Object == nil {
			continue
		}
		text, err := obj.MarshalJSON()
		if err != nil {
			return err
		}
		kept.Write(text)
		kept.WriteByte('\n')
	}
	kubeconfig, err := r.cp.Kubeconfig(r.cp.Config())
	if err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, r.cp.Kubectl(), "--kubeconfig="+kubeconfig, "apply", "--server-side", "-f", "-")
	apply.Stdin = &kept
	apply.Env = append(os.Environ(), "HOME="+r.cp.Dir())
	if output, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, output)
	}
	return nil
}

// menu creates the toppings, and waits until a pizza can be ordered.
func (r *restaurant) menu(ctx context.Context) error {
	for _, topping := range toppings {
		_, err := r.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "toppings"}).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1alpha1", "kind": "Topping",
			"metadata": map[string]any{"name": topping}, "spec": map[string]any{"cost": 1.5},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	l := &load{client: r.client}
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		_, err := l.pizzas("v1alpha1").Create(ctx, pizza("v1alpha1", "first", portions()), metav1.CreateOptions{})
		if err == nil {
			return nil
		}
		if time.Since(begin) > 30*time.Second {
			return fmt.Errorf("no pizza can be ordered: %w", err)
		}
	}
}

// close stops the replicas, and returns an error if one does not stop in order.
func (r *restaurant) close() error {
	var errs []error
	for _, o := range r.operators {
		errs = append(errs, o.stop())
	}
	r.balancer.Close()
	return errors.Join(errs...)
}
