package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
)

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bench.example.com}
spec:
  group: bench.example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 1}}}}}}}
`

// offline compares schema/apiservertest with etcd and kube-apiserver as binaries. It measures the time from
// the start to the first custom object, and the number of objects that a client creates in a second.
func (b bench) offline() error {
	klog.SetLogger(logr.Discard())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var ours, theirs []float64
	var fake, real dynamic.ResourceInterface
	for range 3 {
		begin := time.Now()
		s, err := apiservertest.New(ctx, apiservertest.Manifests([]byte(widgets)))
		if err != nil {
			return err
		}
		if fake, err = firstWidget(ctx, s.Config(), false); err != nil {
			return err
		}
		ours = append(ours, time.Since(begin).Seconds())

		begin = time.Now()
		cp, err := controlplane.Start(ctx)
		if errors.Is(err, controlplane.ErrNoBinaries) {
			fmt.Println("offline/start and offline/create need the binaries of make controlplane")
			return nil
		}
		if err != nil {
			return err
		}
		defer cp.Stop()
		if real, err = firstWidget(ctx, cp.Config(), true); err != nil {
			return err
		}
		theirs = append(theirs, time.Since(begin).Seconds())
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	ratio("offline/start", theirs[1]/ours[1])
	create := func(widgets dynamic.ResourceInterface) func() {
		return func() {
			if _, err := widgets.Create(ctx, widget(), metav1.CreateOptions{}); err != nil {
				panic(err)
			}
		}
	}
	b.compare("offline/create", create(fake), create(real), func(ours, theirs float64) float64 { return theirs / ours })
	fmt.Printf("  the first custom object is there after %.2f s, and after %.1f s with binaries\n", ours[1], theirs[1])
	return footprint(ctx)
}

// footprint prints the memory of a server, and the number of its packages.
func footprint(ctx context.Context) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := apiservertest.New(ctx, apiservertest.Manifests([]byte(widgets))); err != nil {
		return err
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	packages, err := exec.Command("go", "list", "-deps", "github.com/crdkit/crdkit/schema/apiservertest").Output()
	if err != nil {
		return err
	}
	fmt.Printf("  a server has %d MiB on the heap, and %d packages\n", (after.HeapAlloc-before.HeapAlloc)>>20, strings.Count(string(packages), "\n"))
	return nil
}

func widget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Widget", "metadata": map[string]any{"generateName": "w-"}, "spec": map[string]any{},
	}}
}

// firstWidget creates a widget, and retries until the API server accepts it. If define is true, it
// creates the CustomResourceDefinition first.
func firstWidget(ctx context.Context, config *rest.Config, define bool) (dynamic.ResourceInterface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if define {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(widgets), &u.Object); err != nil {
			return nil, err
		}
		definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		if _, err := definitions.Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	all := client.Resource(schema.GroupVersionResource{Group: "bench.example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	for {
		if _, err = all.Create(ctx, widget(), metav1.CreateOptions{}); err == nil || ctx.Err() != nil {
			return all, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
