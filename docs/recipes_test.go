package docs_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
)

// recipes has the code of the page.
const recipes = "../interop/controllerruntime/moving/recipes"

func TestRecipes_Code(t *testing.T) {
	mdtest.Read(t, "recipes.md").GoIsIn(t, recipes, filepath.Join(recipes, "config/crd"), filepath.Join(recipes, "cmd/convert"), "../conversion")
}

// TestRecipes_Commands runs the commands of the page in the repository of an operator, whose last
// release is tagged.
func TestRecipes_Commands(t *testing.T) {
	t.Parallel()
	operator := filepath.Join(t.TempDir(), "operator")
	bases := filepath.Join(operator, "config/crd/bases")
	expect.NoError(t, os.MkdirAll(bases, 0o700))
	write := func(name, text string) {
		t.Helper()
		expect.NoError(t, os.WriteFile(filepath.Join(operator, name), []byte(text), 0o600))
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		expect.NoError(t, err)
		return string(text)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	address := listener.Addr().String()
	expect.NoError(t, listener.Close())
	path := "PATH=" + filepath.Dir(gobuild.Binary(t, "../cmd/crdcheck")) + ":" + os.Getenv("PATH")
	run := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "127.0.0.1:9443", address))
		cmd.Dir, cmd.Env = operator, append(os.Environ(), path)
		if strings.HasPrefix(line, "go build ") { // in the module that has the code
			cmd = exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "-o ", "-o "+operator+"/", 1))
			cmd.Dir = recipes
		}
		var code *exec.ExitError
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		if err != nil && !errors.As(err, &code) {
			t.Fatalf("$ %s: %v", line, err)
		}
		return strings.ReplaceAll(string(out), address, "127.0.0.1:9443")
	}

	const crd = "config/crd/bases/example.com_backups.yaml"
	write(crd, read(filepath.Join(recipes, "testdata/release.yaml")))
	run("git init --quiet && git add . && git -c user.name=a -c user.email=a@example.com commit --quiet -m release && git tag v0.1.0")
	// In the next release, v1 is served and not stored yet.
	next := strings.NewReplacer("storage: false", "storage: true", "storage: true", "storage: false").Replace(read(filepath.Join(recipes, crd)))
	write(crd, next)
	write("new.yaml", strings.Replace(next, "  scope: Namespaced\n", "  scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: https://backup-operator/convert}}}\n", 1))
	write("objects.yaml", read(filepath.Join(recipes, "testdata/objects.yaml")))

	accepted := false
	for _, section := range mdtest.Read(t, "recipes.md").Sections {
		for _, b := range section.Blocks {
			if name, is := b.File(); is {
				accepted = true
				_, entries, _ := strings.Cut(b.Text, "\n")
				at := strings.LastIndex(entries, "reason: ")
				if diff := cmp.Diff(entries[:at]+"reason: \"\" # say why this is acceptable\n", read(filepath.Join(operator, name))); diff != "" {
					t.Errorf("%s (-page +printed):\n%s", name, diff)
				}
				write(name, b.Text)
			}
			if b.Kind != "console" {
				continue
			}
			for _, c := range b.Commands() {
				if diff := cmp.Diff(c.Output, run(c.Line)); diff != "" {
					t.Errorf("$ %s (-page +real):\n%s", c.Line, diff)
				}
			}
		}
	}
	if !accepted {
		t.Error("the page accepts nothing")
	}
}

// TestRecipes_OlderLibraries runs the test of an operator with older libraries in a module of its own.
func TestRecipes_OlderLibraries(t *testing.T) {
	tier.VerifyOnly(t, "compiles parts of an older controller-runtime")
	here, err := filepath.Abs("..")
	expect.NoError(t, err)
	operator := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(operator, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const module = "example.com/backup-operator"
	write("go.mod", "module "+module+"\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/apimachinery v0.33.0\n\tsigs.k8s.io/controller-runtime v0.21.0\n)\n")
	moving := filepath.Dir(recipes)
	for _, version := range []string{"v1", "v1beta1"} {
		for _, name := range []string{"types.go", "conversion.go"} {
			name := filepath.Join("api", version, name)
			text, err := os.ReadFile(filepath.Join(moving, name))
			expect.NoError(t, err)
			write(name, strings.ReplaceAll(string(text), "github.com/crdkit/crdkit/interop/controllerruntime/moving", module))
		}
		write(filepath.Join("api", version, "scheme.go"), "package "+version+"\n\nimport \"sigs.k8s.io/controller-runtime/pkg/scheme\"\n\n"+
			"var SchemeBuilder = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&Backup{}, &BackupList{})\n")
	}
	section := mdtest.Read(t, "recipes.md").Section(t, "How do I test the conversion of an operator with older libraries?")
	write("test/roundtrip/go.mod", strings.Replace(section.BlocksOf("")[0].Text, "../../../crdkit", here, 1))
	write("test/roundtrip/roundtrip_test.go", `package roundtrip_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "`+module+`/api/v1"
	"`+module+`/api/v1beta1"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_, _ = v1.SchemeBuilder.AddToScheme(s), v1beta1.SchemeBuilder.AddToScheme(s)
	return s
}

func TestConversion(t *testing.T) {
`+section.BlocksOf("go")[0].Text+`
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.Iterations(1))
}
`)
	cmd := exec.CommandContext(t.Context(), "go", "test", ".")
	cmd.Dir = filepath.Join(operator, "test/roundtrip")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GONOSUMDB=*", "GOWORK=off")
	// The methods have the fault that the page on the move shows.
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "the round-trip law does not hold for this object") {
		t.Errorf("%v\n%s", err, out)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "k8s.io/apimachinery")
	list.Dir = operator
	if out, err := list.CombinedOutput(); err != nil || string(out) != "k8s.io/apimachinery v0.33.0\n" {
		t.Errorf("the operator: %v\n%s", err, out)
	}
}
