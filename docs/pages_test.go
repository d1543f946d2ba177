package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
)

// TestMove_CodeIsCompiled checks that the code of the page is that of the packages which its
// nested module compiles and tests.
func TestMove_CodeIsCompiled(t *testing.T) {
	const moving = "../interop/controllerruntime/moving"
	directories := []string{moving, filepath.Join(moving, "api/v1beta1")}
	for _, step := range []string{"step0", "step1", "step2", "step3", "step4"} {
		directories = append(directories, filepath.Join(moving, step))
	}
	mdtest.Read(t, "coming-from-controller-runtime.md").GoIsIn(t, directories...)
}

// TestLeaving_CodeIsCompiled checks the code of the page. TestWayOut_NothingLost of the nested module runs
// its commands.
func TestLeaving_CodeIsCompiled(t *testing.T) {
	mdtest.Read(t, "leaving.md").GoIsIn(t, "../interop/controllerruntime/moving", "../interop/controllerruntime/moving/leave/v1beta1")
}

// TestTesting_Code checks that the code of the page is that of tests.
func TestTesting_Code(t *testing.T) {
	mdtest.Read(t, "testing.md").GoIsIn(t, "../examples/pizza", "../examples/crontab", "../schema/apiservertest")
}

// TestFromEnvtest_Code checks the code of the page. TestSuite_Upstream of the nested module runs the suite with both imports.
func TestFromEnvtest_Code(t *testing.T) {
	const module = "../interop/controllerruntime"
	page := mdtest.Read(t, "from-envtest.md")
	page.GoIsIn(t, filepath.Join(module, "moving/step0"), filepath.Join(module, "envtest"))
	suite, err := os.ReadFile(filepath.Join(module, "moving/step0/webhook_suite_test.go"))
	expect.NoError(t, err)
	if diff := cmp.Diff(string(suite), page.Blocks("go")[0].Text); diff != "" {
		t.Errorf("the suite (-file +page):\n%s", diff)
	}
}

// TestTesting_Commands runs the commands of the page.
func TestTesting_Commands(t *testing.T) {
	t.Parallel()
	commands := mdtest.Read(t, "testing.md").Commands()
	if len(commands) == 0 {
		t.Fatal("the page has no commands")
	}
	for _, c := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.Line)
		cmd.Dir = ".."
		out, err := cmd.CombinedOutput()
		if diff := cmp.Diff(c.Output, string(out)); err != nil || diff != "" {
			t.Errorf("$ %s: %v (-page +real):\n%s", c.Line, err, diff)
		}
	}
}
