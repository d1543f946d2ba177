package moving_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/examples/crdmigrate"
	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/leave"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step0"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step2"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/step3"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/breaking"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
)

func addToScheme(s *runtime.Scheme) error {
	if err := v1.AddToScheme(s); err != nil {
		return err
	}
	return v1beta1.AddToScheme(s)
}

// betaStored returns the definition with v1beta1 as the storage version.
func betaStored(t *testing.T) []byte {
	t.Helper()
	text := string(definition(t))
	for _, replace := range [][2]string{{"storage: true", "storage: other"}, {"storage: false", "storage: true"}, {"storage: other", "storage: false"}} {
		if !strings.Contains(text, replace[0]) {
			t.Fatalf("the definition has no %q", replace[0])
		}
		text = strings.Replace(text, replace[0], replace[1], 1)
	}
	return []byte(text)
}

// TestWayIn_TestThenCIThenWebhooks takes an operator from controller-runtime to crdkit, as
// docs/coming-from-controller-runtime.md describes: first its test, then its CI, and then its webhooks
// on a real API server, where clients read and write all the time.
func TestWayIn_TestThenCIThenWebhooks(t *testing.T) {
	t.Parallel()
	// The test of the methods finds the field that they forget: see package lossy.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestConversion$", "./lossy")
	cmd.Env = append(os.Environ(), "CRDKIT_LOSSY=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "spec.encrypt") {
		t.Fatalf("the lost field was not found: %v\n%s", err, out)
	}

	// CI compares the definition with that of the last release, whose target could end in a slash.
	before, err := schema.ParseAll(bytes.Replace(definition(t), []byte(`target: {type: string, pattern: "^$|[^/]$"}`), []byte(`target: {type: string}`), 1))
	expect.NoError(t, err)
	after, err := schema.ParseAll(definition(t))
	expect.NoError(t, err)
	changes, err := breaking.Changes(t.Context(), schema.Release{Definitions: before}, schema.Release{Definitions: after})
	expect.NoError(t, err)
	if len(changes) != 1 || changes[0].Path != "spec.target" || changes[0].Proof == nil {
		t.Fatalf("got the changes %v, want one of spec.target with an object that shows it", changes)
	}

	o := newOperator(t)
	o.kubebuilder(t)
	o.rollOut(t, withManager(addToScheme, step0.Setup))
	o.store(t, "nightly", "weekly")
	stop := o.busy(t, "nightly")
	t.Cleanup(stop)
	o.rollOut(t, withManager(addToScheme, step1.Setup))
	o.rollOut(t, withManager(addToScheme, step2.Setup))
	o.rollOut(t, withManager(leave.AddToScheme, leave.Setup)) // reads the annotation of step 3
	o.rollOut(t, withManager(addToScheme, step3.Setup))

	ca, err := os.ReadFile(filepath.Join(o.folder, "ca.crt"))
	expect.NoError(t, err)
	o.install(t, definition(t), ca)
	o.rollOut(t, filesOnly)
	o.trusts(t, 1)
	deleted, err := o.run(t, "kubectl delete mutatingwebhookconfiguration/backup-operator-mutating-webhook-configuration validatingwebhookconfiguration/backup-operator-validating-webhook-configuration")
	if err != nil {
		t.Fatalf("%v: %s", err, deleted)
	}
	o.rollOut(t, filesAndAuthority)
	o.trusts(t, 2)
	o.rollOut(t, authorityAndFiles)
	o.trusts(t, 2)
	o.rollOut(t, authorityOnly)
	o.trusts(t, 1)
	stop()
	expect.NoError(t, o.whole(t.Context(), "weekly", 7))
}

// TestWayOut_NothingLost takes the operator back to controller-runtime, as docs/leaving.md describes,
// with the commands of the page. Clients read and write all the time, and some have read before what
// they write after.
func TestWayOut_NothingLost(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	page := mdtest.Read(t, "../../../docs/leaving.md")
	o.install(t, betaStored(t), nil)
	o.rollOut(t, authorityOnly)
	names := []string{"nightly", "weekly", "manifest", "unread"}
	o.store(t, names[1:]...) // in v1beta1, with the annotation
	o.install(t, definition(t), nil)
	o.store(t, names[0]) // in v1
	stop := o.busy(t, "nightly")
	t.Cleanup(stop)

	o.commands(t, page.Section(t, "1. Migrate the stored objects"))
	weekly, err := o.beta.Get(t.Context(), "weekly", metav1.GetOptions{})
	expect.NoError(t, err)
	manifest, err := o.beta.Get(t.Context(), "manifest", metav1.GetOptions{})
	expect.NoError(t, err)
	if manifest.GetAnnotations()[lossless.Annotation] == "" {
		t.Fatalf("the object has no annotation that could be lost: %v", manifest)
	}

	o.newHooks = leave.Hooks
	o.install(t, definition(t), nil)
	o.rollOut(t, authorityAndFiles)
	o.commands(t, page.Section(t, "2. Prepare the change"))
	o.rollOut(t, withManager(leave.AddToScheme, leave.Setup))
	expect.NoError(t, o.edit(t.Context(), weekly, 30)) // what a client has read before
	expect.NoError(t, o.beta.Delete(t.Context(), "manifest", metav1.DeleteOptions{}))
	again := backup("v1beta1", "manifest", nil, manifest.Object["spec"].(map[string]any))
	again.SetAnnotations(manifest.GetAnnotations())
	_, err = o.beta.Create(t.Context(), again, metav1.CreateOptions{})
	expect.NoError(t, err)

	o.kubebuilder(t)
	o.trusts(t, 1)
	o.commands(t, page.Section(t, "4. Remove what is left"))
	stop()
	for name, keep := range map[string]int64{"weekly": 30, "manifest": 7, "unread": 7} {
		if err := o.whole(t.Context(), name, keep); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string(nil), o.secrets(t)); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	left, err := o.run(t, "kubectl get crd,mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings,roles,rolebindings --all-namespaces -o name | grep backup")
	expect.NoError(t, err)
	want := []string{
		"customresourcedefinition.apiextensions.k8s.io/backups.example.com",
		"mutatingwebhookconfiguration.admissionregistration.k8s.io/backup-operator-mutating-webhook-configuration",
		"validatingwebhookconfiguration.admissionregistration.k8s.io/backup-operator-validating-webhook-configuration",
		"clusterrole.rbac.authorization.k8s.io/backup-operator-manager",
		"clusterrolebinding.rbac.authorization.k8s.io/backup-operator-manager",
	}
	if diff := cmp.Diff(want, strings.Fields(left)); diff != "" {
		t.Errorf("objects of the operator (-want +got):\n%s", diff)
	}
}

// commands runs the commands of a section, and compares what they print.
func (o *operator) commands(t *testing.T, s mdtest.Section) {
	t.Helper()
	all := 0
	for _, b := range s.BlocksOf("console") {
		for _, c := range b.Commands() {
			all++
			var got string
			var err error
			if args, ok := strings.CutPrefix(c.Line, "crdmigrate "); ok {
				kubeconfig, kerr := o.Kubeconfig(o.Config())
				expect.NoError(t, kerr)
				var out bytes.Buffer
				if code := crdmigrate.Run(t.Context(), append(strings.Fields(args), "--kubeconfig="+kubeconfig, "--propagation-delay=0s"), &out, &out); code != 0 {
					err = fmt.Errorf("exit code %d: %s", code, &out)
				}
			} else {
				got, err = o.run(t, c.Line)
			}
			want := c.Output
			if o.Minor() < 34 { // kubectl 1.33 does not say where
				want = regexp.MustCompile(` from \S+ namespace\n`).ReplaceAllString(want, "\n")
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("$ %s: %v (-page +real):\n%s", c.Line, err, diff)
			}
		}
	}
	if all == 0 {
		t.Errorf("section %q has no commands", s.Title)
	}
}

// shell runs a command in a shell, and returns all that it has written.
func shell(t *testing.T, command string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
