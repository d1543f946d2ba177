package crdmigrate_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/examples/crdmigrate"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
	"github.com/crdkit/crdkit/test/migratetest"
	"github.com/crdkit/crdkit/test/tier"
)

// count returns how many objects are migrated: as many as `make migrate N=…` names, or a default.
func count(t *testing.T) int {
	text := os.Getenv("CRDKIT_MIGRATE_OBJECTS")
	if text == "" {
		return tier.Pick(150, 1000)
	}
	n, err := strconv.Atoi(text)
	expect.NoError(t, err)
	return n
}

// TestRun_Killed is `make migrate` too: it kills a migration, runs another one, and
// says what that took.
func TestRun_Killed(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	path, n := gobuild.Binary(t, "./cmd/crdmigrate"), count(t)
	w := migratetest.New(t, cp.Config())
	start := time.Now()
	stage := func(what string) { fmt.Printf("%6.0f s: %s\n", time.Since(start).Seconds(), what) }
	stage(fmt.Sprintf("creating %d objects", n))
	w.Fill(n)
	stage("reading them in both versions")
	before := map[string]map[string][sha256.Size]byte{"v1alpha1": w.Inventory("v1alpha1"), "v1": w.Inventory("v1")}
	w.Store("v1")

	// A resourceVersion changes when something is written.
	versions := func() map[string]string {
		all := map[string]string{}
		opts := metav1.ListOptions{Limit: 500}
		for {
			list, err := w.Boxes("v1").List(t.Context(), opts)
			expect.NoError(t, err)
			for _, box := range list.Items {
				all[box.GetName()] = box.GetResourceVersion()
			}
			if opts.Continue = list.GetContinue(); opts.Continue == "" {
				return all
			}
		}
	}
	old := versions()
	port, err := controlplane.FreePort()
	expect.NoError(t, err)
	run := func(rate int) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), path, "run", w.CRD, "--kubeconfig="+kubeconfig, fmt.Sprintf("--rate=%d", rate), "--propagation-delay=0s", fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", port))
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		expect.NoError(t, cmd.Start())
		return cmd, out
	}
	stage("migrating them, with a kill after a third")
	first, _ := run(n / 3) // it needs two seconds for the rest, and is killed before
	for done := 0; done < n/3; {
		expect.Eventually(t, func() error {
			before := done
			if done = rewritten(port); done == before {
				return fmt.Errorf("%d of %d", done, n)
			}
			return nil
		})
	}
	expect.NoError(t, first.Process.Signal(syscall.SIGKILL))
	_ = first.Wait() // it was killed
	stage("looking what is rewritten")
	killed := versions()
	for before := old; !maps.Equal(before, killed); { // what was on its way at the kill arrives
		before = killed
		time.Sleep(time.Second)
		killed = versions()
	}
	stage("migrating the rest")
	begin := time.Now()
	second, out := run(0)
	if err := second.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	took := time.Since(begin)
	stage("reading them in both versions again")
	after := versions()
	var done, twice int
	for name := range old {
		switch {
		case old[name] != killed[name] && killed[name] != after[name]:
			twice++
		case old[name] != killed[name]:
			done++
		case killed[name] == after[name]:
			t.Errorf("%s was not rewritten", name)
		}
	}
	if twice > 0 || done < n/3 || done == n {
		t.Errorf("%d of %d were rewritten before it was killed, %d twice", done, n, twice)
	}
	want := fmt.Sprintf("%s: %d objects rewritten in v1, %d were current, 0 have gone, 0 failed; v1alpha1 dropped from status.storedVersions\n", w.CRD, n-done, done)
	if got := regexp.MustCompile(`(?m)^.* of \d+ objects, .*\n`).ReplaceAllString(out.String(), ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.OnlyIn("v1")
	changed := 0
	for version, boxes := range before {
		after := w.Inventory(version)
		if len(after) != n {
			t.Errorf("%d of %d boxes are there in %s", len(after), n, version)
		}
		for name, box := range boxes {
			if after[name] != box {
				changed++
				t.Errorf("%s is another one in %s", name, version)
			}
		}
	}
	resident := second.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	if resident > maxResident && !gobuild.Race() { // which needs several times the memory
		t.Errorf("it took %d MiB", resident)
	}
	fmt.Printf("migrate: %d objects, %d changed, %d written twice after a kill, %.0f a second, %d MiB resident at most\n",
		n, changed, twice, float64(n-done)/took.Seconds(), resident)
}

// maxResident is what a migration may take in MiB, however many objects there are.
const maxResident = 128

// rewritten is what the metrics of a migration say; 0 if it does not serve any.
func rewritten(port int) int {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	match := regexp.MustCompile(`crdkit_migration_objects\{.*result="rewritten"\} (\S+)`).FindSubmatch(text)
	if match == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(string(match[1]), 64)
	return int(n)
}

func TestRun_Output(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	w := migratetest.New(t, cp.Config())
	for _, i := range []int{0, 1, 2} {
		expect.NoError(t, w.Create(i))
	}
	run := func(args ...string) string {
		t.Helper()
		var out, errOut strings.Builder
		code := crdmigrate.Run(t.Context(), append(args, "--kubeconfig="+kubeconfig), &out, &errOut)
		return fmt.Sprintf("%s%s%d", out.String(), errOut.String(), code)
	}
	step := func(want string, args ...string) {
		t.Helper()
		if diff := cmp.Diff(want, run(args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	step(w.CRD+": nothing to do: only v1alpha1 is stored\n0", "run", w.CRD)
	step(`error: migrate: CustomResourceDefinition `+w.CRD+`: v1alpha1 is the storage version: set storage: true for another one, and migrate the objects
v1alpha1 is served: set served: false, and check that no client asks for it (the metric apiserver_requested_deprecated_apis, if it is marked as deprecated, or the audit log)
v1alpha1 is named in managedFields by "unpacker" (Update), in 3 objects, such as default/box-00000: nothing moves such an owner; PruneManagedFields (--prune-managed-fields) lets go of it, and loses no field
1`, "remove", w.CRD, "v1alpha1")
	w.Store("v1")
	w.Change(func(v map[string]any) { v["served"] = v["name"] == "v1alpha1" })
	step("error: migrate: CustomResourceDefinition "+w.CRD+": the storage version v1 is not served, expected served: true: a rewrite in v1alpha1 would lose what that has no field for\n2", "run", w.CRD)
	w.Change(func(v map[string]any) { v["served"] = true })
	expect.Eventually(t, func() error {
		_, err := w.Boxes("v1").List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	})
	step(w.CRD+": 3 objects can be rewritten in v1, 0 were current, 0 have gone, 0 failed; v1alpha1 can be dropped from status.storedVersions\n0", "run", w.CRD, "--dry-run")
	// The exit code is 1 if nothing but a refusal went wrong. No update of box-00000 is valid.
	rules := func(rules ...any) {
		w.Change(func(v map[string]any) {
			expect.NoError(t, unstructured.SetNestedSlice(v, rules, "schema", "openAPIV3Schema", "x-kubernetes-validations"))
		})
	}
	rules(map[string]any{"rule": "self.metadata.name != 'box-00000' || oldSelf.metadata.name == ''", "message": "the box is sealed"})
	for want, names := range map[string][]string{"1": {w.CRD}, "2": {w.CRD, "pallets.example.com"}} {
		expect.Eventually(t, func() error {
			got := run(append([]string{"run", "--dry-run"}, names...)...)
			if !strings.Contains(got, `default/box-00000: Box.`+w.Group+` "box-00000" is invalid`) || !strings.HasSuffix(got, want) {
				return fmt.Errorf("want a refusal and the exit code %s: %s", want, got)
			}
			return nil
		})
	}
	rules()
	expect.Eventually(t, func() error {
		if got := run("run", w.CRD, "--dry-run"); !strings.HasSuffix(got, "\n0") {
			return errors.New(got)
		}
		return nil
	})
	step(w.CRD+": 3 objects rewritten in v1, 0 were current, 0 have gone, 0 failed; v1alpha1 dropped from status.storedVersions\n0", "run", w.CRD, "--propagation-delay=0s")
	w.Change(func(v map[string]any) { v["served"] = v["name"] == "v1" })
	step(w.CRD+": v1alpha1 can be removed\n0", "remove", w.CRD, "v1alpha1", "--prune-managed-fields", "--dry-run")
	step(w.CRD+": v1alpha1 was removed\n0", "remove", w.CRD, "v1alpha1", "--prune-managed-fields")
	step("error: migrate: CustomResourceDefinition "+w.CRD+": no version \"v1alpha1\", expected one of v1\n2", "remove", w.CRD, "v1alpha1")
	step("error: requires at least 1 arg(s), only received 0\n2", "run")
	if got := run("run", "pallets.example.com"); !strings.Contains(got, `customresourcedefinitions.apiextensions.k8s.io "pallets.example.com" not found`) || !strings.HasSuffix(got, "2") {
		t.Errorf("got %s", got)
	}
}
