package walkthrough

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/examples/internal/menu"
	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
)

const moving = "../../../../docs/moving-to-an-aggregated-server.md"

// TestMoving_NothingLost runs the commands of the page: to the server through the API, which loses what the page says; then to
// the server by etcd, back, and to the server for good, which loses nothing.
func TestMoving_NothingLost(t *testing.T) {
	tier.VerifyOnly(t, "runs two API servers, and moves the objects five times")
	t.Parallel()
	m := newMove(t)
	m.SkipIfOlder(t, "the page shows its words")
	m.play("1. Prepare", 0)
	const services = "kubectl get $APISERVICES -o jsonpath='{.items[*].spec.service.name}'"

	// While the label is there, an APIService that is applied is overwritten.
	m.run("kubectl apply --server-side --force-conflicts -f apiservices.yaml")
	m.prints(services, "")

	m.play("2. Stop writes", 0)
	before := m.read()
	m.play("Without access to etcd", 0)
	m.play("3. Copy the objects and switch", 1)
	m.play("Without access to etcd", 1)
	lost := []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"}
	after := m.read()
	m.same("what the API keeps", without(lost, before), without(lost, after))
	for i, field := range lost {
		if others := append(lost[:i:i], lost[i+1:]...); cmp.Equal(without(others, before), without(others, after)) {
			t.Errorf("the API has kept %s", field)
		}
	}
	m.run("kubectl label $APISERVICES kube-aggregator.kubernetes.io/automanaged=true")
	m.prints(services, "")
	m.same("the objects of the CRD", before, m.read())
	m.play("4. Resume writes", 0)
	const empty = "etcdctl --endpoints=$OWN del --prefix /pizza-apiserver/$GROUP/"
	m.same("the page has a command", true, strings.Contains(m.page.Text, "`"+empty+"`"))
	m.run(empty)

	watched := m.watch()
	m.play("2. Stop writes", 0)
	m.storeOld()
	stored, before := m.stored(m.cluster, "/registry/"), m.read()
	m.play("3. Copy the objects and switch", 0)
	m.play("3. Copy the objects and switch", 1)
	m.same("what is stored", stored, m.stored(m.socket(), "/pizza-apiserver/"))
	m.same("what is read", before, m.read())
	m.play("4. Resume writes", 0)

	// The server works with the objects that have moved.
	const prefix = "pizza.restaurant.programming-kubernetes.info/"
	m.prints("kubectl annotate pizza margherita moved=yes", prefix+"margherita annotated\n")
	m.prints("kubectl create -f new.yaml", prefix+"new created\n")
	m.prints("kubectl delete pizza plain", `pizza.restaurant.programming-kubernetes.info "plain" deleted from default namespace`+"\n")
	m.prints(`kubectl patch pizza doomed --type=merge -p '{"metadata":{"finalizers":null}}'`, prefix+"doomed patched\n")
	const pizzas = prefix + "margherita\n" + prefix + "new\n" + prefix + "old\n"
	m.prints("kubectl get pizzas -o name", pizzas)
	m.same("what a watch from before has seen", prefix+"old\n", watched()) // which storeOld stored
	m.same("what a watch of a larger resource version sees", "", m.watchFrom("1000000"))
	m.same("what was left behind", stored, m.stored(m.cluster, "/registry/"))

	stored, before = m.stored(m.socket(), "/pizza-apiserver/"), m.read()
	m.play("Back to the CRD", 0)
	m.same("what is stored after the way back", stored, m.stored(m.cluster, "/registry/"))
	m.same("what is read after the way back", before, m.read())
	m.play("4. Resume writes", 0)
	m.prints("kubectl annotate pizza old moved=back", prefix+"old annotated\n")

	m.play("2. Stop writes", 0)
	m.run(empty)
	m.play("3. Copy the objects and switch", 0)
	m.play("3. Copy the objects and switch", 1)
	m.play("4. Resume writes", 0)
	m.stopOperator()
	expect.NoError(t, show.Eventually(t.Context(), time.Minute, func() error {
		return show.Contains(m.run("kubectl annotate pizza old moved=again --overwrite"), "failed calling webhook")
	}))
	before = m.read()
	m.play("Finish the move", 0)
	m.same("what is read at the end", before, m.read())
	m.prints("kubectl annotate pizza old moved=again --overwrite", prefix+"old annotated\n")
	m.prints(services, "pizza-apiserver pizza-apiserver")
	m.prints("kubectl get crd -o name", "")

	// The CRD can come back.
	expect.NoError(t, m.Apply(t.Context(), bytes.Join(pizza.Definitions(), []byte("---\n")), "crds.yaml"))
	m.prints("kubectl wait --for=condition=Established crd --all >/dev/null && "+services, "pizza-apiserver pizza-apiserver")
	m.same("what is read beside a new CRD", without([]string{"annotations", "managedFields"}, before), without([]string{"annotations", "managedFields"}, m.read()))
	m.run("kubectl label $APISERVICES kube-aggregator.kubernetes.io/automanaged=true")
	m.prints("kubectl get pizzas -o name", "")
}

// move is a cluster with the pizza operator, an aggregated server that is not registered, and a shell for the page.
type move struct {
	*testing.T
	*controlplane.ControlPlane
	*Restaurant
	page    *mdtest.Page
	dir     string // of the shell
	cluster string // the address of the cluster's etcd
	stdin   io.Writer
	output  *bufio.Scanner

	stopOperator func()
}

func newMove(t *testing.T) *move {
	t.Helper()
	cp := controlplane.ForTest(t, controlplane.Aggregation())
	r, err := Open(cp, gobuild.Binary(t, "../../cmd/pizza-apiserver"), io.Discard)
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, r.Close()) })
	for _, step := range []func(context.Context) error{r.permit, r.startEtcd, r.startServer} {
		expect.NoError(t, step(t.Context()))
	}
	m := &move{T: t, ControlPlane: cp, Restaurant: r, page: mdtest.Read(t, moving), dir: t.TempDir(), cluster: "unix://" + filepath.Join(cp.Dir(), "etcd.sock")}
	m.operate()

	manifests, err := exec.CommandContext(t.Context(), r.binary, "manifests", "--ca-file="+r.certificate(), fmt.Sprintf("--service-port=%d", r.port)).Output()
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(m.dir, "apiservices.yaml"), apiServices(manifests), 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(m.dir, "new.yaml"), []byte(newPizza), 0o600))
	for _, s := range m.page.Sections {
		for _, b := range s.Blocks {
			if name, is := b.File(); is {
				expect.NoError(t, os.WriteFile(filepath.Join(m.dir, name), []byte(b.Text), 0o600))
			}
		}
	}
	m.startShell()

	// The API server calls the webhooks when the operator has written their CA bundle.
	expect.NoError(t, show.Eventually(t.Context(), time.Minute, func() error { return r.Try(t.Context(), objects, "apply", "--server-side", "-f", "-") }))
	expect.NoError(t, r.Try(t.Context(), "", "delete", "pizza", "doomed", "--wait=false"))
	m.prints("kubectl get pizzas -o jsonpath='{.items[*].status.cost}'", "3 3 1") // which the operator writes
	return m
}

// operate runs the operator of package pizza, with its definitions and webhooks.
func (m *move) operate() {
	m.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(m, err)
	endpoint := pizza.Endpoint{Namespace: pizza.Namespace, URL: "https://" + listener.Addr().String(), ReviewVersions: []string{"v1"}}
	manifests, err := pizza.Manifests("", endpoint, nil)
	expect.NoError(m, err)
	expect.NoError(m, m.Apply(m.Context(), manifests, "operator.yaml"))
	ctx, cancel := context.WithCancel(m.Context())
	ended := make(chan error, 1)
	go func() { ended <- pizza.Run(ctx, m.Config(), listener, endpoint) }()
	m.stopOperator = sync.OnceFunc(func() {
		cancel()
		expect.NoError(m, <-ended)
	})
	m.Cleanup(m.stopOperator)
}

const objects = `
apiVersion: restaurant.programming-kubernetes.info/v1alpha1
kind: Topping
metadata: {name: tomato}
spec: {cost: 1}
---
apiVersion: restaurant.programming-kubernetes.info/v1alpha1
kind: Topping
metadata: {name: mozzarella}
spec: {cost: 1}
---
apiVersion: restaurant.programming-kubernetes.info/v1alpha1
kind: Pizza
metadata:
  name: margherita
  namespace: default
  labels: {menu: lunch}
  annotations: {conversion.crdkit.github.io/lost: '{"v1beta1":{}}'}
spec: {toppings: [tomato, mozzarella, tomato]}
---
apiVersion: restaurant.programming-kubernetes.info/v1beta1
kind: Pizza
metadata:
  name: doomed
  namespace: default
  finalizers: [restaurant.programming-kubernetes.info/oven]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: table, uid: 11111111-2222-3333-4444-555555555555}]
spec: {toppings: [{name: tomato, quantity: 3}]}
---
apiVersion: restaurant.programming-kubernetes.info/v1beta1
kind: Pizza
metadata: {name: plain, namespace: default}
spec: {toppings: [{name: tomato}]}
`

const newPizza = `
apiVersion: restaurant.programming-kubernetes.info/v1alpha1
kind: Pizza
metadata: {name: new, namespace: default}
spec: {toppings: [mozzarella]}
`

// storeOld stores a pizza in v1alpha1, as an earlier release did.
func (m *move) storeOld() {
	m.Helper()
	_, err := m.etcd3(m.cluster).Put(m.Context(), "/registry/"+menu.Group+"/pizzas/default/old", `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"creationTimestamp":"2020-02-02T02:02:02Z","generation":7,"name":"old","namespace":"default","uid":"99999999-2222-3333-4444-555555555555"},"spec":{"toppings":["tomato","mozzarella","tomato"]},"status":{"cost":3}}`)
	expect.NoError(m, err)
}

func (m *move) etcd3(endpoint string) *clientv3.Client {
	m.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
	expect.NoError(m, err)
	m.Cleanup(func() { _ = client.Close() })
	return client
}

// stored returns what an etcd has stored of the group, by the end of the key.
func (m *move) stored(endpoint, prefix string) map[string]string {
	m.Helper()
	found, err := m.etcd3(endpoint).Get(m.Context(), prefix+menu.Group+"/", clientv3.WithPrefix())
	expect.NoError(m, err)
	all := map[string]string{}
	for _, kv := range found.Kvs {
		all[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
	}
	return all
}

// read returns all objects in all versions, without their resource versions.
func (m *move) read() (all []unstructured.Unstructured) {
	m.Helper()
	for _, resource := range []string{menu.Alphas, menu.Betas, "toppings"} {
		var list unstructured.UnstructuredList
		expect.NoError(m, m.Read(m.Context(), &list, resource, "--all-namespaces", "--show-managed-fields"))
		all = append(all, list.Items...)
	}
	return without([]string{"resourceVersion"}, all)
}

// without returns objects without some fields of their metadata.
func without(fields []string, objects []unstructured.Unstructured) (all []unstructured.Unstructured) {
	for _, object := range objects {
		object := object.DeepCopy()
		for _, field := range fields {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		all = append(all, *object)
	}
	return all
}

// same fails the test if what was read or stored differs.
func (m *move) same(what string, before, after any) {
	m.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		m.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

// watch watches the pizzas until the function that it returns is called, which returns their names. The test fails if the watch
// has ended before.
func (m *move) watch() (stop func() string) {
	m.Helper()
	ctx, cancel := context.WithCancel(m.Context())
	cmd := m.Command(ctx, "get", "pizzas", "--watch-only", "-o", "name")
	var seen strings.Builder
	cmd.Stdout, cmd.Stderr = &seen, &seen
	expect.NoError(m, cmd.Start())
	time.Sleep(time.Second) // until it watches
	return func() string {
		m.Helper()
		cancel()
		if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") {
			m.Errorf("the watch has ended: %v", err)
		}
		return seen.String()
	}
}

// watchFrom watches the pizzas from a resource version on, while one of them is changed, and returns the events.
func (m *move) watchFrom(version string) string {
	m.Helper()
	changed := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		changed <- m.Try(m.Context(), "", "annotate", "pizza", "margherita", "watched=yes")
	}()
	output, err := m.Guest.Run(m.Context(), "", "get", "--raw", "/apis/"+menu.Group+"/v1beta1/pizzas?watch=1&timeoutSeconds=4&resourceVersion="+version)
	expect.NoError(m, errors.Join(err, <-changed))
	return output
}

// startShell starts the POSIX shell that runs all commands of the page.
func (m *move) startShell() {
	m.Helper()
	bin := m.TempDir()
	expect.NoError(m, os.Symlink(gobuild.Binary(m, "go.etcd.io/etcd/etcdctl/v3"), filepath.Join(bin, "etcdctl")))
	cmd := exec.CommandContext(m.Context(), "/bin/sh")
	cmd.Dir, cmd.WaitDelay = m.dir, time.Second
	cmd.Env = append(os.Environ(), "KUBECONFIG="+m.Guest.Kubeconfig, "KUBECACHEDIR=", "HOME="+m.TempDir(), "CLUSTER="+m.cluster, "OWN="+m.socket(),
		"PATH="+bin+":"+filepath.Dir(m.Kubectl())+":"+os.Getenv("PATH"))
	stdin, err := cmd.StdinPipe()
	expect.NoError(m, err)
	reader, writer, err := os.Pipe()
	expect.NoError(m, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	expect.NoError(m, cmd.Start())
	expect.NoError(m, writer.Close())
	m.Cleanup(func() {
		_ = cmd.Wait() // the context has killed it
		expect.NoError(m, reader.Close())
	})
	m.stdin, m.output = stdin, bufio.NewScanner(reader)
}

// run runs a command in the shell, and returns what it prints.
func (m *move) run(line string) string {
	m.Helper()
	const end = "end of the output"
	_, err := fmt.Fprintf(m.stdin, "%s\nprintf '\\n%s\\n'\n", line, end)
	expect.NoError(m, err)
	var output strings.Builder
	for m.output.Scan() {
		if m.output.Text() == end {
			text := strings.TrimSuffix(output.String(), "\n") // that of printf
			return text
		}
		output.WriteString(m.output.Text() + "\n")
	}
	m.Fatalf("$ %s: the shell has ended: %v\n%s", line, m.output.Err(), &output)
	return ""
}

// prints runs a command until it prints a text.
func (m *move) prints(line, text string) {
	m.Helper()
	expect.NoError(m, show.Eventually(m.Context(), 30*time.Second, func() error {
		if got := m.run(line); got != text {
			return fmt.Errorf("$ %s (-want +got):\n%s", line, cmp.Diff(text, got))
		}
		return nil
	}))
}

// writes are the commands of the page that are not run again.
var writes = regexp.MustCompile(`^kubectl (apply|create|replace|delete|label)|^kill|&$| del `)

// play runs the commands of a block of the page. Those that only read run until they print what the page says, together with those
// before them that wrote a file.
func (m *move) play(section string, block int) {
	m.Helper()
	b := m.page.Section(m, section).BlocksOf("console")[block]
	files := ""
	for _, c := range b.Commands() {
		end := time.Now().Add(30 * time.Second)
		got := m.run(c.Line)
		for got != c.Output && !writes.MatchString(c.Line) && time.Now().Before(end) {
			time.Sleep(200 * time.Millisecond)
			got = m.run(files + c.Line)
		}
		if got != c.Output {
			m.Fatalf("%s:%d: $ %s (-page +real):\n%s", m.page.Path, b.Line, c.Line, cmp.Diff(c.Output, got))
		}
		if files = ""; c.Output == "" && !writes.MatchString(c.Line) {
			files = c.Line + "\n"
		}
	}
}
