package corpus_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
)

var realEnvtest = flag.Bool("envtest", false, "TestSuites runs the suites as they are released, on etcd and kube-apiserver")

// suite is a project whose tests of a controller or a webhook run on envtest.
type suite struct {
	module   string
	version  string
	edits    []string            // flags of go mod edit that the module needs outside its repository
	patch    map[string][]string // what else changes in a file: old, new, old, new …
	packages []string            // those with the tests
}

var suites = []suite{
	{
		module: "sigs.k8s.io/cluster-api", version: "v1.14.2",
		// The repository replaces its module api by a folder, which the released module does not have.
		edits: []string{"-dropreplace=sigs.k8s.io/cluster-api/api", "-require=sigs.k8s.io/cluster-api/api@v1.14.2"},
		// The tests write the address of the API server into kubeconfigs, so that it needs a port. The others are names that
		// crdkit's envtest lacks.
		patch: map[string][]string{"internal/test/envtest/environment.go": {
			`"net"`, `"net"; "net/http/httptest"; upstream "sigs.k8s.io/controller-runtime/pkg/envtest"`,
			`// Localhost is used`, "env.Config.Host = httptest.NewServer(env.Server).URL + `/`\n// Localhost is used",
			`env.ControlPlane = envtest.ControlPlane{}`, `env := upstream.Environment{}`,
			`envtest.APIServer`, `upstream.APIServer`,
			`envtest.ReadCRDFiles`, `upstream.ReadCRDFiles`,
			`envtest.WaitForCRDs`, `upstream.WaitForCRDs`,
		}},
		packages: []string{
			"controllers/crdmigrator", "core/reconcilers/clusterclass", "core/reconcilers/clusterresourceset", "core/reconcilers/extensionconfig",
			"core/reconcilers/machinepool", "core/reconcilers/machineset", "core/webhooks/admission/test", "internal/util/ssa/test", "util/patch/test",
		},
	},
	{
		module: "github.com/cert-manager/trust-manager", version: "v0.25.0",
		packages: []string{"test/integration/bundle", "test/integration/clusterbundle"},
	},
}

// The tests of other projects pass on schema/apiservertest.
func TestSuites(t *testing.T) {
	if os.Getenv("CRDKIT_SUITES") == "" {
		t.Skip("takes minutes: make suites")
	}
	for _, s := range suites {
		t.Run(filepath.Base(s.module), func(t *testing.T) {
			specs := s.run(t, s.checkout(t))
			failed := 0
			for _, sp := range specs {
				if sp.failed {
					failed++
					t.Errorf("%s fails:\n%s", sp.name, sp.output)
				}
			}
			fmt.Printf("suite: %s %s, %d specs, %d passed, %d failed\n", s.module, s.version, len(specs), len(specs)-failed, failed)
		})
	}
}

// checkout returns a folder with the module. Its suites import the envtest of crdkit instead of that of
// controller-runtime. What else changes is the patch.
func (s suite) checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	expect.NoError(t, err)
	// The go command builds the packages of a folder again if its name has changed, and finds none in one with an underscore.
	dir := filepath.Join(root, "bin", "_suites", filepath.Base(s.module))
	expect.NoError(t, os.RemoveAll(dir))
	released := os.DirFS(filepath.Dir(published(t, s.module+"@"+s.version, "go.mod")[0]))
	err = fs.WalkDir(released, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(released, name)
		if err != nil {
			return err
		}
		switch {
		case name == "go.sum":
			sums, err := os.ReadFile("../interop/controllerruntime/go.sum")
			if err != nil {
				return err
			}
			text = append(text, sums...)
		case strings.HasSuffix(name, ".go") && !*realEnvtest:
			text = bytes.ReplaceAll(text, []byte(`"sigs.k8s.io/controller-runtime/pkg/envtest"`), []byte(`"github.com/crdkit/crdkit/interop/controllerruntime/envtest"`))
			text = []byte(strings.NewReplacer(s.patch[name]...).Replace(string(text)))
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
	expect.NoError(t, err)
	edit := exec.CommandContext(t.Context(), "go", append([]string{"mod", "edit",
		"-require=github.com/crdkit/crdkit@v0.1.0", "-replace=github.com/crdkit/crdkit=" + root,
		"-require=github.com/crdkit/crdkit/interop/controllerruntime@v0.1.0",
		"-replace=github.com/crdkit/crdkit/interop/controllerruntime=" + filepath.Join(root, "interop", "controllerruntime"),
	}, s.edits...)...)
	edit.Dir = dir
	if out, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// spec is a test without subtests, or a spec of Ginkgo.
type spec struct {
	name   string // begins with the package
	failed bool
	output string
}

// event is what go test -json prints.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// run runs the tests of the packages, and returns those that were not skipped.
func (s suite) run(t *testing.T, dir string) (specs []spec) {
	t.Helper()
	const report = "specs.xml" // in the folder of each package that has specs of Ginkgo
	cmd := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-vet=off", "-count=1", "-json")
	for _, p := range s.packages {
		cmd.Args = append(cmd.Args, "./"+p)
	}
	cmd.Args = append(cmd.Args, "-args", "-ginkgo.junit-report="+report)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, _ := cmd.Output()         // the events tell more than the error
	outputs := map[string]string{} // by the package and the test
	tests := map[string][]event{}  // those that ended, by the package
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var e event
		if err := decoder.Decode(&e); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		e.Package = strings.TrimPrefix(e.Package, s.module+"/")
		name := e.Package + " " + e.Test
		switch ended := e.Action == "pass" || e.Action == "fail"; {
		case e.Action == "build-output":
			t.Error(e.Output)
		case e.Action == "output":
			outputs[name] += e.Output
		case ended && e.Test != "":
			tests[e.Package] = append(tests[e.Package], e)
		case ended:
			t.Logf("%s: %.1f s", e.Package, e.Elapsed)
			more := ginkgo(t, e.Package, filepath.Join(dir, e.Package, report))
			if more == nil {
				more = leaves(tests[e.Package], outputs)
			}
			if e.Action == "fail" && !slices.ContainsFunc(more, func(sp spec) bool { return sp.failed }) {
				t.Errorf("%s fails:\n%s", e.Package, outputs[name])
			}
			specs = append(specs, more...)
		}
	}
	return specs
}

// leaves returns the tests of a package without those that have subtests, unless they fail by themselves.
func leaves(tests []event, outputs map[string]string) (specs []spec) {
	for _, e := range tests {
		covered := func(sub event) bool {
			return strings.HasPrefix(sub.Test, e.Test+"/") && (sub.Action == "fail" || e.Action == "pass")
		}
		if !slices.ContainsFunc(tests, covered) {
			name := e.Package + " " + e.Test
			specs = append(specs, spec{name, e.Action == "fail", outputs[name]})
		}
	}
	return specs
}

// ginkgo returns the specs of a JUnit report of Ginkgo, or nil if there is no report.
func ginkgo(t *testing.T, pkg, report string) (specs []spec) {
	t.Helper()
	text, err := os.ReadFile(report)
	if os.IsNotExist(err) {
		return nil
	}
	var suites struct {
		Cases []struct {
			Name    string `xml:"name,attr"`
			Status  string `xml:"status,attr"`
			Failure string `xml:"failure"`
			Error   string `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err == nil {
		err = xml.Unmarshal(text, &suites)
	}
	if err != nil {
		t.Fatalf("%s: %v", report, err)
	}
	for _, c := range suites.Cases {
		if c.Status != "skipped" && c.Status != "pending" && strings.HasPrefix(c.Name, "[It] ") {
			specs = append(specs, spec{pkg + " " + strings.TrimPrefix(c.Name, "[It] "), c.Status != "passed", c.Failure + c.Error})
		}
	}
	return specs
}
