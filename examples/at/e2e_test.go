package at

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/examples/at/api/v1alpha1"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
)

const (
	root      = "../.." // of the repository: where the README's commands are run
	module    = "github.com/crdkit/crdkit"
	patience  = 2 * time.Minute
	atsPath   = "/apis/cnat.example.com/v1alpha1/namespaces/default/ats"
	anHourAgo = -time.Hour
)

// binding lets a user who is not an administrator run the controller, as the README says.
const binding = "kubectl create clusterrolebinding at --clusterrole=at --user=at"

// cluster is a control plane with a kubectl, and a user who may do what the role says.
type cluster struct {
	*controlplane.ControlPlane
	user        *rest.Config
	environment []string
}

// newCluster runs commands, and then grants the rights of the role.
func newCluster(t *testing.T, cp *controlplane.ControlPlane, commands ...string) *cluster {
	t.Helper()
	admin, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	user, err := cp.User("at")
	expect.NoError(t, err)
	c := &cluster{cp, user, append(os.Environ(), "KUBECONFIG="+admin, "KUBECACHEDIR="+t.TempDir(),
		"PATH="+filepath.Dir(cp.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))}
	for _, command := range append(commands,
		"kubectl apply -f examples/at/config/rbac",
		binding,
		"until kubectl auth can-i list pods --all-namespaces --as=at; do sleep 0.1; done",
	) {
		if output, err := c.sh(t, command); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, output)
		}
	}
	return c
}

// sh runs a command as the README's reader would, and returns what it prints.
func (c *cluster) sh(t *testing.T, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.WaitDelay = root, c.environment, time.Second
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// start starts what the README runs with go run. It stops with the function that is returned,
// with the test, or with the test's process, whose end is that of its standard input.
func (c *cluster) start(t *testing.T, pkg string) (stop func()) {
	t.Helper()
	binary := gobuild.Binary(t, filepath.Join(module, pkg))
	kubeconfig, err := c.Kubeconfig(c.user)
	expect.NoError(t, err)
	cmd := exec.Command("sh", "-c", `"$0" & cat; kill $!; wait $!`, binary)
	cmd.Env = append(slices.Clone(c.environment), "KUBECONFIG="+kubeconfig)
	stdin, err := cmd.StdinPipe()
	expect.NoError(t, err)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	expect.NoError(t, cmd.Start())
	stop = sync.OnceFunc(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the controller did not stop in order: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the controller said:\n%s", output.String())
		}
	})
	return stop
}

// TestReadme does what the README says, and sees what it says. A command that does not yet
// print that is given again for a while: the API server takes a moment to use a definition.
func TestReadme(t *testing.T) {
	tier.VerifyOnly(t, "replays the README")
	readme := mdtest.Read(t, "README.md")
	all := readme.Commands()
	if len(all) < 10 {
		t.Fatalf("the README has only %d commands", len(all))
	}
	if !strings.Contains(readme.Text, "`"+binding+"`") {
		t.Errorf("the README lacks %s", binding)
	}
	c := newCluster(t, controlplane.ForTest(t))
	c.SkipIfOlder(t, "the README shows its words")
	var stop func() // what is in the background
	for _, step := range all {
		if background, ok := strings.CutSuffix(step.Line, " &"); ok {
			pkg, ok := strings.CutPrefix(background, "go run ")
			if !ok {
				t.Fatalf("only go run goes into the background, and not %s", step.Line)
			}
			stop = c.start(t, pkg)
			continue
		}
		if step.Line == "kill %1" {
			if stop == nil {
				t.Fatal("nothing is in the background yet")
			}
			stop()
			continue
		}
		fails := strings.HasPrefix(step.Output, "Error from server") || strings.Contains(step.Output, " is invalid: ")
		expect.Eventually(t, func() error {
			output, err := c.sh(t, step.Line)
			// kubectl ends no line of a jsonpath, and a terminal shows it as if it did.
			if diff := cmp.Diff(step.Output, strings.TrimSuffix(output, "\n")+"\n"); diff != "" {
				return fmt.Errorf("$ %s\n(-want +got):\n%s", step.Line, diff)
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) != fails {
				return fmt.Errorf("$ %s\nended with %v", step.Line, err)
			}
			return nil
		})
	}
}

// TestAt_RealAPIServer sends what schema_test.go sends, and then runs
// commands while the controller stops in every moment in which it can.
func TestAt_RealAPIServer(t *testing.T) {
	// In the first two seconds after the definition is established, the API server delays a create
	// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, serveResource).
	c := newCluster(t, controlplane.Shared(t),
		"kubectl apply -f examples/at/config/crd", "kubectl wait --for=condition=Established crd/ats.cnat.example.com")
	admin, err := kubernetes.NewForConfig(c.Config())
	expect.NoError(t, err)
	expect.Eventually(t, func() error { return admin.CoreV1().RESTClient().Get().AbsPath(atsPath).Do(t.Context()).Error() })

	t.Run("the schema does the same", func(t *testing.T) {
		c.SkipIfOlder(t, "its words are compared")
		theSchemaDoesTheSame(t, c.Config())
	})
	k := startKubelet(t, admin)
	t.Run("a restart at any moment runs no command twice", func(t *testing.T) { restarts(t, c, k, admin) })
	t.Run("an At that is edited runs as it is now, and once", func(t *testing.T) { edits(t, c, k, admin) })
	t.Run("two controllers run no command twice", func(t *testing.T) { two(t, c, k, admin) })
	t.Run("a command waits for its time", func(t *testing.T) { waits(t, c, admin) })
}

func theSchemaDoesTheSame(t *testing.T, config *rest.Config) {
	warned := &warnings{}
	config.WarningHandler = warned
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	for _, w := range writes {
		warned.text = nil
		result := client.CoreV1().RESTClient().Post().AbsPath(atsPath).Param("dryRun", "All").Param("fieldValidation", "Warn").
			Body(atOf(w.spec)).SetHeader("Content-Type", "application/json").Do(t.Context())
		if w.fails != "" {
			// Unlike Raw, Error says what the Status says.
			if err := result.Error(); err == nil || err.Error() != w.fails {
				t.Errorf("%s: got %v, want %s", w.name, err, w.fails)
			}
			continue
		}
		out, err := result.Raw()
		if err != nil {
			t.Errorf("%s: %v", w.name, err)
			continue
		}
		if diff := cmp.Diff(w.want, specOf(t, out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", w.name, diff)
		}
		if got := strings.Join(warned.text, "\n"); got != w.warns {
			t.Errorf("%s: warnings %q, want %q", w.name, got, w.warns)
		}
	}
}

// warnings collects what the API server warns of.
type warnings struct{ text []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.text = append(w.text, text) }

// kubelet ends each Pod at once that has no gate, and remembers those that it has run.
type kubelet struct {
	mu  sync.Mutex
	ran map[string][]types.UID // by the name of the Pod
}

// pods returns the Pods of a name that have run.
func (k *kubelet) pods(name string) []types.UID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.ran[name])
}

func (k *kubelet) runs(name string) int { return len(k.pods(name)) }

func startKubelet(t *testing.T, client kubernetes.Interface) *kubelet {
	t.Helper()
	k := &kubelet{ran: map[string][]types.UID{}}
	pods, err := client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { pods.Stop(); wg.Wait() })
	wg.Go(func() {
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || len(pod.Spec.SchedulingGates) > 0 {
				continue
			}
			k.mu.Lock()
			if !slices.Contains(k.ran[pod.Name], pod.UID) {
				k.ran[pod.Name] = append(k.ran[pod.Name], pod.UID)
			}
			k.mu.Unlock()
			if pod.Status.Phase == corev1.PodPending {
				// Of a Pod that has been deleted meanwhile there is nothing to say.
				_, _ = client.CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
			}
		}
	})
	return k
}

// createAt creates an At with its time.
func createAt(t *testing.T, client kubernetes.Interface, name string, after time.Duration) {
	t.Helper()
	text := fmt.Sprintf(`{"apiVersion":"cnat.example.com/v1alpha1","kind":"At","metadata":{"name":%q},"spec":{"schedule":%q,"command":"date"}}`,
		name, time.Now().Add(after).UTC().Format(time.RFC3339))
	expect.NoError(t, client.CoreV1().RESTClient().Post().AbsPath(atsPath).SetHeader("Content-Type", "application/json").Body([]byte(text)).Do(t.Context()).Error())
}

// patchAt changes the spec of an At.
func patchAt(t *testing.T, client kubernetes.Interface, name, spec string) {
	t.Helper()
	expect.NoError(t, client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(atsPath, name).Body([]byte(`{"spec":`+spec+`}`)).Do(t.Context()).Error())
}

func readAt(t *testing.T, client kubernetes.Interface, name string) *v1alpha1.At {
	t.Helper()
	text, err := client.CoreV1().RESTClient().Get().AbsPath(atsPath, name).DoRaw(t.Context())
	expect.NoError(t, err)
	at := &v1alpha1.At{}
	expect.NoError(t, json.Unmarshal(text, at))
	return at
}

// awaitPhase waits until an At has come so far.
func awaitPhase(t *testing.T, client kubernetes.Interface, name string, want v1alpha1.Phase) *v1alpha1.At {
	t.Helper()
	var at *v1alpha1.At
	expect.Eventually(t, func() error {
		if at = readAt(t, client, name); at.Status.Phase != want {
			return fmt.Errorf("%s is %s and not %s", name, at.Status.Phase, want)
		}
		return nil
	})
	return at
}

// runUntil runs a controller until the function returns.
func runUntil(t *testing.T, config *rest.Config, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if err := Run(ctx, config); err != nil {
			t.Error(err)
		}
	})
	f()
}

// write is one of the writes that a controller does for an At.
type write struct{ name, method, path, body string } // the path and body contain this

var sequence = []write{
	{"create", http.MethodPost, "/pods", ""},
	{"record", http.MethodPatch, "/status", "RUNNING"},
	{"open", http.MethodPatch, "/pods/", "schedulingGates"},
	{"finish", http.MethodPatch, "/status", "DONE"},
}

// stopping stops a controller at a write: it is not sent, or its answer is lost.
type stopping struct {
	http.RoundTripper
	write
	before  bool
	stop    func()
	stopped *atomic.Bool
}

func (s stopping) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != s.method || !strings.Contains(r.URL.Path, s.path) {
		return s.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte(s.body)) || !s.stopped.CompareAndSwap(false, true) {
		return s.RoundTripper.RoundTrip(r)
	}
	defer s.stop()
	if s.before {
		return nil, errors.New("the controller stops")
	}
	answer, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return nil, fmt.Errorf("the controller stops after %s", answer.Status)
}

// runUntilIt runs a controller until a write: it stops before that is sent, or when the answer
// is lost.
func runUntilIt(t *testing.T, config *rest.Config, w write, before bool) {
	t.Helper()
	stopped := &atomic.Bool{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	config = rest.CopyConfig(config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return stopping{rt, w, before, cancel, stopped} })
	expect.NoError(t, Run(ctx, config))
	if !stopped.Load() {
		t.Fatalf("the controller did not %s", w.name)
	}
}

// restarts stops a controller before and after each write, perhaps deletes the Pod then, and
// starts another one.
func restarts(t *testing.T, c *cluster, k *kubelet, client kubernetes.Interface) {
	for i, w := range sequence {
		for _, before := range []bool{true, false} {
			for _, deleted := range []bool{false, true} {
				name := fmt.Sprintf("%s-%s", w.name, map[bool]string{true: "before", false: "after"}[before])
				want := 1
				if deleted {
					name += "-deleted"
					if i == 1 && !before || i == 2 && before { // it might have run, for all that is known
						want = 0
					}
				}
				t.Run(name, func(t *testing.T) {
					createAt(t, client, name, anHourAgo)
					runUntilIt(t, c.user, w, before)
					if i == 1 && before { // the moment between the Pod and the status
						if at, pod := readAt(t, client, name), readPod(t, client, name); at.Status.Phase != v1alpha1.PhasePending || len(pod.Spec.SchedulingGates) != 1 {
							t.Errorf("the At is %s, and the Pod has the gates %v", at.Status.Phase, pod.Spec.SchedulingGates)
						}
					}
					if deleted {
						err := client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{})
						if err != nil && !apierrors.IsNotFound(err) {
							t.Fatal(err)
						}
					}
					runUntil(t, c.user, func() { awaitPhase(t, client, name, v1alpha1.PhaseDone) })
					k.catchUp(t, client, name+"-sentinel")
					if ran := k.runs(name); ran != want {
						t.Errorf("the command ran %d times, and not %d", ran, want)
					}
				})
			}
		}
	}
}

// edits stops a controller that has made a Pod and not recorded it, changes the At, and
// starts another one.
func edits(t *testing.T, c *cluster, k *kubelet, client kubernetes.Interface) {
	for name, specs := range map[string][]string{
		"edited-command":  {`{"command":"hostname"}`},
		"edited-schedule": {`{"schedule":"2099-07-03T02:00:00Z","command":"hostname"}`, `{"schedule":"2019-07-03T02:00:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			createAt(t, client, name, anHourAgo)
			runUntilIt(t, c.user, sequence[1], true)
			outdated := readPod(t, client, name)
			for _, spec := range specs {
				patchAt(t, client, name, spec)
			}
			var at *v1alpha1.At
			runUntil(t, c.user, func() { at = awaitPhase(t, client, name, v1alpha1.PhaseDone) })
			k.catchUp(t, client, name+"-sentinel")
			pod := readPod(t, client, name)
			if pod.UID == outdated.UID {
				t.Error("the Pod of the At as it was has not been deleted")
			}
			if diff := cmp.Diff([]types.UID{pod.UID}, k.pods(name)); diff != "" {
				t.Errorf("the Pods that ran (-want +got):\n%s", diff)
			}
			if at.Status.PodUID != pod.UID {
				t.Errorf("the status says %s, and the Pod is %s", at.Status.PodUID, pod.UID)
			}
			if diff := cmp.Diff([]string{"sh", "-c", "hostname"}, pod.Spec.Containers[0].Command); diff != "" {
				t.Errorf("the command that ran (-want +got):\n%s", diff)
			}
		})
	}
}

func readPod(t *testing.T, client kubernetes.Interface, name string) *corev1.Pod {
	t.Helper()
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	return pod
}

// catchUp waits until the kubelet has seen all that is in the API server now.
func (k *kubelet) catchUp(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "sentinel", Image: "busybox"}}},
	}
	_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.Eventually(t, func() error {
		if k.runs(name) == 0 {
			return errors.New("the kubelet sees no sentinel")
		}
		return nil
	})
}

func two(t *testing.T, c *cluster, k *kubelet, client kubernetes.Interface) {
	const n = 20
	name := func(i int) string { return fmt.Sprintf("both-%d", i) }
	runUntil(t, c.user, func() {
		runUntil(t, c.user, func() {
			for i := range n {
				createAt(t, client, name(i), anHourAgo)
			}
			for i := range n {
				awaitPhase(t, client, name(i), v1alpha1.PhaseDone)
			}
		})
	})
	k.catchUp(t, client, "both-sentinel")
	for i := range n {
		if ran := k.runs(name(i)); ran != 1 {
			t.Errorf("%s ran %d times", name(i), ran)
		}
	}
}

func waits(t *testing.T, c *cluster, client kubernetes.Interface) {
	runUntil(t, c.user, func() {
		createAt(t, client, "soon", 3*time.Second)
		at := awaitPhase(t, client, "soon", v1alpha1.PhaseDone)
		// Both are whole seconds.
		pod := readPod(t, client, "soon")
		if pod.CreationTimestamp.Before(&at.Spec.Schedule) {
			t.Errorf("the Pod was created at %s, and its time is %s", pod.CreationTimestamp, at.Spec.Schedule)
		}
		if pod.UID != at.Status.PodUID {
			t.Errorf("the Pod is %s, and the status says %s", pod.UID, at.Status.PodUID)
		}
	})
}
