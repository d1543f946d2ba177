package apiservertest_test

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
)

// The goroutines of a server end within milliseconds after it. The test is not parallel, so that it counts no others.
func TestServer_LeavesNoGoroutine(t *testing.T) {
	hooks, err := operator()
	expect.NoError(t, err)
	use := func(t *testing.T) {
		s := apiservertest.Start(t, apiservertest.Webhooks(hooks), apiservertest.RBAC(), apiservertest.Manifests([]byte(policyYAML)))
		_, err := clientOf(s, "v1beta1").Create(t.Context(), cronTab(t, "v1beta1", "a", `{}`), metav1.CreateOptions{})
		expect.NoError(t, err)
		core := kubernetes.NewForConfigOrDie(s.Config()).CoreV1()
		_, err = core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
		expect.NoError(t, err)
		w, err := core.ConfigMaps("team").Watch(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		defer w.Stop()
		expect.NoError(t, core.Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}))
		for err == nil {
			time.Sleep(time.Millisecond)
			_, err = core.Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		}
		if !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	// least waits until there are at most so many goroutines, or for a while, and returns the least number.
	least := func(enough int, patience time.Duration) int {
		n := runtime.NumGoroutine()
		for begin := time.Now(); n > enough && time.Since(begin) < patience; time.Sleep(time.Millisecond) {
			n = min(n, runtime.NumGoroutine())
		}
		return n
	}
	for range 2 {
		t.Run("first", use)
	}
	first := least(0, time.Second)
	for range 5 {
		t.Run("later", use)
	}
	if n := least(first, 10*time.Second); n > first {
		var stacks bytes.Buffer
		expect.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 1))
		t.Errorf("%d goroutines after two servers, %d after seven:\n%s", first, n, &stacks)
	}
}
