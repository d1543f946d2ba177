package apiservertest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
)

var conflict = apierrors.NewConflict(resource.GroupResource(), "a", errors.New("somebody else was faster"))

func TestInject_TheSecondUpdate(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
	client := clientOf(s, "v1")
	out, err := client.Create(t.Context(), cronTab(t, "v1", "a", `{schedule: x}`), metav1.CreateOptions{})
	expect.NoError(t, err)
	fault := s.Inject(apiservertest.Fault{Verb: "update", Resource: "crontabs", Name: "a", Skip: 1, Err: conflict})
	var errs []bool
	for i := range int64(3) {
		expect.NoError(t, unstructured.SetNestedField(out.Object, i+2, "spec", "replicas"))
		updated, err := client.Update(t.Context(), out, metav1.UpdateOptions{})
		if err == nil {
			out = updated
		} else if err.Error() != conflict.Error() {
			t.Error(err)
		}
		errs = append(errs, apierrors.IsConflict(err))
	}
	if want := []bool{false, true, false}; !slices.Equal(errs, want) || fault.Failed() != 1 {
		t.Errorf("conflicts: got %v and %d, want %v and 1", errs, fault.Failed(), want)
	}
}

func TestInject_Selects(t *testing.T) {
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
	config := s.Config()
	config.Impersonate.UserName = "alice"
	admin, alice := kubernetes.NewForConfigOrDie(s.Config()).CoreV1(), kubernetes.NewForConfigOrDie(config).CoreV1()
	get := func(of typedcorev1.CoreV1Interface, namespace, name string) bool {
		_, err := of.ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsServiceUnavailable(err)
	}
	unavailable := apierrors.NewServiceUnavailable("on request")
	for what, test := range map[string]struct {
		fault apiservertest.Fault
		fails bool
	}{
		"everything":        {apiservertest.Fault{}, true},
		"the user":          {apiservertest.Fault{User: "alice"}, true},
		"another user":      {apiservertest.Fault{User: "system:admin"}, false},
		"the verb":          {apiservertest.Fault{Verb: "get"}, true},
		"another verb":      {apiservertest.Fault{Verb: "list"}, false},
		"another resource":  {apiservertest.Fault{Resource: "secrets"}, false},
		"the subresource":   {apiservertest.Fault{Resource: "configmaps/status"}, false},
		"the namespace":     {apiservertest.Fault{Resource: "configmaps", Namespace: "kube-system"}, true},
		"another namespace": {apiservertest.Fault{Namespace: "default"}, false},
		"the name":          {apiservertest.Fault{Name: "a"}, true},
		"another name":      {apiservertest.Fault{Name: "b"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			test.fault.Err, test.fault.Times = unavailable, -1
			fault := s.Inject(test.fault)
			if got := get(alice, "kube-system", "a"); got != test.fails {
				t.Errorf("fails: got %v, want %v", got, test.fails)
			}
			fault.Remove()
			if get(alice, "kube-system", "a") || get(admin, "kube-system", "a") {
				t.Error("a request still fails")
			}
		})
	}
}

// The controller of namespaces is a client of the server, and goes on.
func TestInject_LosesTheAnswer(t *testing.T) {
	s := apiservertest.Start(t)
	core := kubernetes.NewForConfigOrDie(s.Config()).CoreV1()
	s.Inject(apiservertest.Fault{Verb: "create", Resource: "namespaces", Done: true, Err: apierrors.NewTimeoutError("on request", 0)})
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if _, err := core.Namespaces().Create(t.Context(), team, metav1.CreateOptions{}); !apierrors.IsTimeout(err) {
		t.Fatalf("got %v, want a timeout", err)
	}
	if _, err := core.Namespaces().Create(t.Context(), team, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("got %v, want that the first request has created it", err)
	}
	s.Inject(apiservertest.Fault{User: "system:apiserver", Times: -1})
	s.Inject(apiservertest.Fault{Verb: "delete", Done: true})
	if err := core.Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		t.Fatalf("got %v, want a broken connection", err)
	}
	expect.EventuallyTrue(t, "the namespace is gone", func() bool {
		_, err := core.Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestInject_EndsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiservertest.Start(t)
		core := kubernetes.NewForConfigOrDie(s.Config()).CoreV1()
		pods, err := core.Pods("").Watch(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		secrets, err := core.Secrets("").Watch(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		synctest.Wait()
		fault := s.Inject(apiservertest.Fault{Verb: "watch", Resource: "pods", Err: apierrors.NewResourceExpired("too old")})
		if e, open := <-pods.ResultChan(); open {
			t.Errorf("the watch goes on with %v", e)
		}
		synctest.Wait()
		select {
		case e, open := <-secrets.ResultChan():
			t.Errorf("the other watch has %v (open: %v)", e, open)
		default:
		}
		secrets.Stop()
		_, err = core.Pods("").Watch(t.Context(), metav1.ListOptions{})
		if !apierrors.IsResourceExpired(err) || fault.Failed() != 1 {
			t.Errorf("got %v, want that the resourceVersion is too old", err)
		}
		pods, err = core.Pods("").Watch(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		pods.Stop()
	})
}

// A server that is away for a while, and informers that catch up.
func TestInject_Away(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiservertest.Start(t)
		client := kubernetes.NewForConfigOrDie(s.Config())
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		secrets := factory.Core().V1().Secrets().Lister()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		other := apiservertest.Fault{User: "system:admin", Times: -1}
		away := s.Inject(other)
		time.Sleep(time.Minute)
		if _, err := client.CoreV1().Secrets("default").Get(t.Context(), "a", metav1.GetOptions{}); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("got %v, want a broken connection", err)
		}
		if away.Failed() < 3 {
			t.Errorf("%d requests have failed, want that the informer tries again", away.Failed())
		}
		away.Remove()
		_, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		expect.NoError(t, err)
		time.Sleep(time.Minute)
		if all, err := secrets.List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("the informer has %v (%v), want one Secret", all, err)
		}
		cancel()
		factory.Shutdown()
	})
}

func TestInject_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiservertest.Start(t)
		core := kubernetes.NewForConfigOrDie(s.Config()).CoreV1()
		s.Inject(apiservertest.Fault{Verb: "get", Delay: time.Hour})
		s.Inject(apiservertest.Fault{Verb: "list", Delay: time.Hour, Err: apierrors.NewServerTimeout(corev1.Resource("pods"), "list", 0)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := core.Pods("default").Get(ctx, "a", metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the deadline is over", err)
		}
		start := time.Now()
		_, err := core.Pods("default").List(t.Context(), metav1.ListOptions{})
		if took := time.Since(start); !apierrors.IsServerTimeout(err) || took < time.Hour {
			t.Errorf("got %v after %v, want a timeout after an hour", err, took)
		}
	})
}
