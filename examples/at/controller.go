package at

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/at/api/v1alpha1"
	"github.com/crdkit/crdkit/scheme"
)

const (
	workers = 2
	// resync is the longest time that a name waits in the queue, so that the controller notices
	// when its clock is set, and does not keep the name of a deleted At until its time.
	resync = 10 * time.Minute
)

// Run runs the commands of all Ats of a cluster until the context is done. It returns an error at
// once if the configuration cannot be used; later failures are logged and retried.
//
// A command runs at most once, even if the controller stops between two steps, or if several
// controllers run at the same time:
//
//  1. At its time, the At gets a Pod whose scheduling gate keeps it from running, and which
//     replaces a Pod of an older generation of the At.
//  2. The status of the At becomes RUNNING and names the UID of that Pod, if the At has not
//     changed since it was read.
//  3. The gate of that Pod, and of no other, is opened.
//  4. When the Pod has ended, or no longer exists, the status becomes DONE.
//
// Each step begins with the state in the API server that the previous step has left.
func Run(ctx context.Context, config *rest.Config) error {
	c, err := newController(config)
	if err != nil {
		return fmt.Errorf("at: %w", err)
	}
	c.run(ctx)
	return nil
}

type controller struct {
	atClient                rest.Interface
	client                  kubernetes.Interface
	atInformer, podInformer cache.SharedIndexInformer
	// queue holds the names of Ats, which are those of their Pods.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newController(config *rest.Config) (*controller, error) {
	s, err := scheme.New(scheme.Version(v1alpha1.GroupVersion, &v1alpha1.At{}, &v1alpha1.AtList{}))
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "at" // also the name of the field manager
	config.QPS = -1         // the API server's own flow control is fairer than a limit here
	config.ContentType = runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	atClient, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	ats := cache.NewListWatchFromClient(atClient, "ats", metav1.NamespaceAll, fields.Everything())
	pods := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector = label + "=" + labelValue
	})
	c := &controller{
		atClient:    atClient,
		client:      client,
		atInformer:  cache.NewSharedIndexInformer(ats, &v1alpha1.At{}, resync, nil),
		podInformer: cache.NewSharedIndexInformer(pods, &corev1.Pod{}, 0, nil),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](100*time.Millisecond, 30*time.Second)),
	}
	for _, informer := range []cache.SharedIndexInformer{c.atInformer, c.podInformer} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    c.enqueue,
			UpdateFunc: func(_, obj any) { c.enqueue(obj) },
			DeleteFunc: c.enqueue,
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *controller) enqueue(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		c.queue.Add(name)
	}
}

// run works until the context is done, and then waits for its workers.
func (c *controller) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.queue.ShutDown()
	wg.Go(func() { c.atInformer.RunWithContext(ctx) })
	wg.Go(func() { c.podInformer.RunWithContext(ctx) })
	for range workers {
		wg.Go(func() { c.work(ctx) })
	}
	<-ctx.Done()
}

func (c *controller) work(ctx context.Context) {
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		err := c.reconcile(ctx, name)
		switch {
		case err == nil || ctx.Err() != nil:
			c.queue.Forget(name)
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			c.queue.AddRateLimited(name) // the informer will soon have the change or the deletion
		default:
			klog.FromContext(ctx).Error(err, "Cannot run a command; trying again", "at", name)
			c.queue.AddRateLimited(name)
		}
		c.queue.Done(name)
	}
}

// reconcile does the next step for an At. The event of its change triggers the step after it.
func (c *controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	obj, exists, err := c.atInformer.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return err // the garbage collector deletes the Pod of a deleted At
	}
	at := obj.(*v1alpha1.At)
	switch at.Status.Phase {
	case v1alpha1.PhasePending:
		if wait := time.Until(at.Spec.Schedule.Time); wait > 0 {
			c.queue.AddAfter(name, min(wait, resync))
			return nil
		}
		pod, err := c.createPod(ctx, at)
		if err != nil {
			return err
		}
		return c.setStatus(ctx, at, map[string]any{"phase": v1alpha1.PhaseRunning, "podUID": pod.UID})
	case v1alpha1.PhaseRunning:
		// Read from the API server, because a cache that lacks a new Pod would make it look
		// deleted.
		pod, err := c.client.CoreV1().Pods(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (pod.UID != at.Status.PodUID || ended(pod)):
			return c.setStatus(ctx, at, map[string]any{"phase": v1alpha1.PhaseDone})
		case err != nil:
			return fmt.Errorf("reading the Pod: %w", err)
		}
		return c.openGate(ctx, pod)
	}
	return nil
}

// createPod creates the Pod of the At, or returns an existing Pod of this generation. It deletes a
// Pod of an older generation, which has the command of that generation, and returns a conflict, so
// that the next attempt creates another Pod.
//
// The deleted Pod has never run. Its gate is opened only after the status names it, and the status
// names only a Pod of the At's generation, if the At has not changed since it was read. The At in
// the cache is newer than the Pod and still PENDING, so its status does not name the Pod.
func (c *controller) createPod(ctx context.Context, at *v1alpha1.At) (*corev1.Pod, error) {
	pods := c.client.CoreV1().Pods(at.Namespace)
	pod, err := pods.Create(ctx, newPod(at), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		pod, err = pods.Get(ctx, at.Name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("creating the Pod: %w", err)
	}
	if !metav1.IsControlledBy(pod, at) {
		return nil, fmt.Errorf("the Pod %s/%s is not of this At: delete one of them, or give the At another name", pod.Namespace, pod.Name)
	}
	generation := generationOf(pod)
	if generation < at.Generation {
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if err != nil {
			return nil, fmt.Errorf("deleting the Pod of generation %d of the At: %w", generation, err)
		}
	}
	if generation != at.Generation { // a newer Pod means that the cache is outdated
		return nil, apierrors.NewConflict(corev1.Resource("pods"), pod.Name, fmt.Errorf("made for generation %d of the At, and not %d", generation, at.Generation))
	}
	return pod, nil
}

// setStatus changes the status, unless the At has changed since it was read.
func (c *controller) setStatus(ctx context.Context, at *v1alpha1.At, status map[string]any) error {
	patch, err := patchOf(at.ResourceVersion, "status", status)
	if err != nil {
		return err
	}
	err = c.atClient.Patch(types.MergePatchType).Namespace(at.Namespace).Resource("ats").Name(at.Name).SubResource("status").Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// openGate removes the gate, unless that has been done, or the Pod has changed since it was read.
func (c *controller) openGate(ctx context.Context, pod *corev1.Pod) error {
	others := gatesWithout(pod)
	if len(others) == len(pod.Spec.SchedulingGates) {
		return nil
	}
	patch, err := patchOf(pod.ResourceVersion, "spec", map[string]any{"schedulingGates": others})
	if err != nil {
		return err
	}
	if _, err = c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("opening the gate of the Pod: %w", err)
	}
	return nil
}

// patchOf returns a merge patch that fails with a conflict if the object has another
// resource version.
func patchOf(resourceVersion, field string, value any) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": resourceVersion}, field: value})
}
