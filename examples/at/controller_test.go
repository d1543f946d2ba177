package at

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdkit/crdkit/examples/at/api/v1alpha1"
	"github.com/crdkit/crdkit/test/expect"
)

const (
	create  = `POST /api/v1/namespaces/ns/pods`
	read    = `GET /api/v1/namespaces/ns/pods/x`
	remove  = `DELETE /api/v1/namespaces/ns/pods/x {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"p"}}`
	open    = `PATCH /api/v1/namespaces/ns/pods/x {"metadata":{"resourceVersion":"7"},"spec":{"schedulingGates":[]}}`
	running = `PATCH /apis/cnat.example.com/v1alpha1/namespaces/ns/ats/x/status {"metadata":{"resourceVersion":"1"},"status":{"phase":"RUNNING","podUID":"p"}}`
	done    = `PATCH /apis/cnat.example.com/v1alpha1/namespaces/ns/ats/x/status {"metadata":{"resourceVersion":"1"},"status":{"phase":"DONE"}}`
)

var x = cache.NewObjectName("ns", "x")

// apiServer answers requests without a network, so that it can live in synthetic time.
type apiServer struct {
	mu      sync.Mutex
	asked   []string
	answers map[string]answer // by the first word of what it is asked; without one, an empty object
}

type answer struct {
	code int
	body string
}

func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Method + " " + r.URL.Path
	if r.Method == http.MethodPatch || r.Method == http.MethodDelete {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		asked += " " + strings.TrimSpace(string(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked)
	a, ok := s.answers[r.Method]
	if !ok {
		a = answer{http.StatusOK, `{}`}
	}
	return &http.Response{
		StatusCode: a.code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, nil
}

// take returns what was asked since the last time.
func (s *apiServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// newTestController returns a controller whose informers do not run. The API server answers
// with a Pod.
func newTestController(t *testing.T, pod answer) (*controller, *apiServer) {
	t.Helper()
	server := &apiServer{answers: map[string]answer{http.MethodGet: pod, http.MethodPost: pod}}
	c, err := newController(&rest.Config{Host: "http://cluster.example.com", Transport: server})
	expect.NoError(t, err)
	t.Cleanup(c.queue.ShutDown)
	return c, server
}

// know puts an At into the cache of the controller, as its informer would.
func know(t *testing.T, c *controller, phase v1alpha1.Phase, schedule time.Time) {
	t.Helper()
	at := &v1alpha1.At{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "a", ResourceVersion: "1", Generation: 2},
		Spec:       v1alpha1.AtSpec{Schedule: metav1.NewTime(schedule), Command: "date", Image: "busybox"},
		Status:     v1alpha1.AtStatus{Phase: phase},
	}
	if phase != v1alpha1.PhasePending {
		at.Status.PodUID = "p"
	}
	expect.NoError(t, c.atInformer.GetStore().Add(at))
	c.enqueue(at)
}

// podOf returns a Pod with a UID, of the At with a UID, and of the generation that the
// controller knows.
func podOf(uid, owner, gates string, phase corev1.PodPhase) answer {
	return answer{http.StatusOK, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":"x","uid":%q,"resourceVersion":"7",
		"annotations":{"cnat.example.com/generation":"2"},
		"ownerReferences":[{"apiVersion":"cnat.example.com/v1alpha1","kind":"At","name":"x","uid":%q,"controller":true}]},
		"spec":{"schedulingGates":[%s]},"status":{"phase":%q}}`, uid, owner, gates, phase)}
}

// of returns a Pod with another annotation.
func of(generation string, pod answer) answer {
	pod.body = strings.Replace(pod.body, `"2"`, fmt.Sprintf("%q", generation), 1)
	return pod
}

const ours = `{"name":"` + gate + `"}`

// Each step begins with what the API server has.
func TestReconcile_Phases(t *testing.T) {
	gone := answer{http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`}
	for _, c := range []struct {
		name  string
		phase v1alpha1.Phase
		pod   answer
		want  []string
		fails string
	}{
		{name: "a Pod is made, and recorded", phase: v1alpha1.PhasePending, pod: podOf("p", "a", ours, corev1.PodPending), want: []string{create, running}},
		{name: "a Pod of somebody else is left alone", phase: v1alpha1.PhasePending, pod: podOf("p", "b", "", corev1.PodPending), want: []string{create},
			fails: "the Pod ns/x is not of this At: delete one of them, or give the At another name"},
		{name: "the gate of the Pod is opened", phase: v1alpha1.PhaseRunning, pod: podOf("p", "a", ours, corev1.PodPending), want: []string{read, open}},
		{name: "other gates stay closed", phase: v1alpha1.PhaseRunning, pod: podOf("p", "a", `{"name":"b"},`+ours, corev1.PodPending),
			want: []string{read, strings.Replace(open, "[]", `[{"name":"b"}]`, 1)}},
		{name: "a Pod without the gate has its time", phase: v1alpha1.PhaseRunning, pod: podOf("p", "a", "", corev1.PodRunning), want: []string{read}},
		{name: "a Pod that was not recorded never runs", phase: v1alpha1.PhaseRunning, pod: podOf("q", "a", ours, corev1.PodPending), want: []string{read, done}},
		{name: "a Pod that has gone is not made again", phase: v1alpha1.PhaseRunning, pod: gone, want: []string{read, done}},
		{name: "success is an end", phase: v1alpha1.PhaseRunning, pod: podOf("p", "a", "", corev1.PodSucceeded), want: []string{read, done}},
		{name: "failure is one too", phase: v1alpha1.PhaseRunning, pod: podOf("p", "a", "", corev1.PodFailed), want: []string{read, done}},
		{name: "what is done is done", phase: v1alpha1.PhaseDone, pod: gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			controller, server := newTestController(t, c.pod)
			know(t, controller, c.phase, time.Now())
			var fails string
			if err := controller.reconcile(t.Context(), x); err != nil {
				fails = err.Error()
			}
			if diff := cmp.Diff(c.fails, fails); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, server.take()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// A Pod of another generation is not run.
// The At is edited between the two first steps: what the API server has is a Pod of another
// generation than that of the cache, which is 2.
func TestReconcile_PodOfAnotherGeneration(t *testing.T) {
	pod := podOf("p", "a", ours, corev1.PodPending)
	for _, c := range []struct {
		name  string
		pod   answer
		want  []string
		fails string
	}{
		{name: "the same", pod: pod, want: []string{create, read, running}},
		{name: "older", pod: of("1", pod), want: []string{create, read, remove},
			fails: `Operation cannot be fulfilled on pods "x": made for generation 1 of the At, and not 2`},
		{name: "none", pod: answer{pod.code, strings.Replace(pod.body, annotation, "other", 1)}, want: []string{create, read, remove},
			fails: `Operation cannot be fulfilled on pods "x": made for generation 0 of the At, and not 2`},
		{name: "no number", pod: of("two", pod), want: []string{create, read, remove},
			fails: `Operation cannot be fulfilled on pods "x": made for generation 0 of the At, and not 2`},
		{name: "newer, because the cache is behind", pod: of("3", pod), want: []string{create, read},
			fails: `Operation cannot be fulfilled on pods "x": made for generation 3 of the At, and not 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			controller, server := newTestController(t, c.pod)
			server.answers[http.MethodPost] = answer{http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"AlreadyExists"}`}
			know(t, controller, v1alpha1.PhasePending, time.Now())
			err := controller.reconcile(t.Context(), x)
			var fails string
			if err != nil {
				fails = err.Error()
			}
			if diff := cmp.Diff(c.fails, fails); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if err != nil && !apierrors.IsConflict(err) { // else it would be logged
				t.Errorf("%v is no conflict", err)
			}
			if diff := cmp.Diff(c.want, server.take()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// recordingQueue keeps how long a name is to wait.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	waits []time.Duration
}

func (q *recordingQueue) AddAfter(_ cache.ObjectName, wait time.Duration) {
	q.waits = append(q.waits, wait)
}

// No name is kept in the queue until a far time.
// An At may be deleted meanwhile.
func TestReconcile_FarTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newTestController(t, answer{})
		queue := &recordingQueue{TypedRateLimitingInterface: c.queue}
		c.queue = queue
		for _, wait := range []time.Duration{100 * 365 * 24 * time.Hour, time.Minute} {
			know(t, c, v1alpha1.PhasePending, time.Now().Add(wait))
			expect.NoError(t, c.reconcile(t.Context(), x))
		}
		if diff := cmp.Diff([]time.Duration{10 * time.Minute, time.Minute}, queue.waits); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string(nil), server.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// The Ats of these tests stay PENDING in the cache, whatever is written. So each time that
// the controller looks at one after its time, it says so with two requests.
var started = []string{create, running}

// A command waits for its time.
func TestWork_FutureTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newTestController(t, podOf("p", "a", ours, corev1.PodPending))
		know(t, c, v1alpha1.PhasePending, time.Now().Add(25*time.Hour))
		go c.work(t.Context())
		asks(t, server, 25*time.Hour-time.Second, nil)
		asks(t, server, time.Second, started)
		asks(t, server, 24*time.Hour, nil)
	})
}

// A time in the past means now.
func TestWork_PastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newTestController(t, podOf("p", "a", ours, corev1.PodPending))
		know(t, c, v1alpha1.PhasePending, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))
		go c.work(t.Context())
		asks(t, server, 0, started)
	})
}

// The controller follows a time that changes.
func TestWork_ChangedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newTestController(t, podOf("p", "a", ours, corev1.PodPending))
		begin := time.Now()
		know(t, c, v1alpha1.PhasePending, begin.Add(2*time.Hour))
		go c.work(t.Context())
		asks(t, server, time.Hour, nil)
		know(t, c, v1alpha1.PhasePending, begin.Add(4*time.Hour)) // later
		asks(t, server, 2*time.Hour, nil)
		know(t, c, v1alpha1.PhasePending, begin.Add(3*time.Hour+30*time.Minute)) // earlier
		asks(t, server, 30*time.Minute-time.Second, nil)
		asks(t, server, time.Second, started)
	})
}

// A step that failed is tried again.
func TestWork_FailedStep(t *testing.T) {
	for _, code := range []int{http.StatusConflict, http.StatusForbidden, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			c, server := newTestController(t, podOf("p", "a", ours, corev1.PodPending))
			reason := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 403: metav1.StatusReasonForbidden, 409: metav1.StatusReasonConflict}[code]
			server.answers[http.MethodPatch] = answer{code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason)}
			know(t, c, v1alpha1.PhasePending, time.Now())
			go c.work(t.Context())
			asks(t, server, 0, started)
			asks(t, server, 100*time.Millisecond, started)
			asks(t, server, 200*time.Millisecond, started)
		})
	}
}

// asks lets time pass, and says what must have been asked at its end and not before.
func asks(t *testing.T, server *apiServer, after time.Duration, want []string) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	if diff := cmp.Diff(want, server.take()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The Pod runs the command once, and as it is written.
func TestNewPod(t *testing.T) {
	at := &v1alpha1.At{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "a", Generation: 3},
		Spec:       v1alpha1.AtSpec{Command: `echo $$ $(hostname)`, Image: "busybox"},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "x", Labels: map[string]string{"app.kubernetes.io/managed-by": "at"},
			Annotations: map[string]string{"cnat.example.com/generation": "3"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "cnat.example.com/v1alpha1", Kind: "At", Name: "x", UID: "a", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "cnat.example.com/recorded"}},
			RestartPolicy:   corev1.RestartPolicyNever,
			// The kubelet makes $ of $$ (third_party/forked/golang/expansion/expand.go).
			Containers: []corev1.Container{{Name: "command", Image: "busybox", Command: []string{"sh", "-c", `echo $$$$ $$(hostname)`}}},
		},
	}
	if diff := cmp.Diff(want, newPod(at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
