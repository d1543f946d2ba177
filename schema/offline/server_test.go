package offline_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/schema/offline"
)

const cronTabYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              schedule: {type: string}
              replicas: {type: integer, default: 1, minimum: 0}
`

var cronTabs = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}

func TestServer_First(t *testing.T) {
	begin := time.Now()
	s := offline.Start(t, offline.Manifests([]byte(cronTabYAML)))
	t.Logf("started after %v", time.Since(begin))
	client := dynamic.NewForConfigOrDie(s.Config())
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}}
	out, err := client.Resource(cronTabs).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{})
	t.Logf("created after %v", time.Since(begin))
	t.Log(out, err)
	kube := kubernetes.NewForConfigOrDie(s.Config())
	ns, err := kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	t.Log(len(ns.Items), err)
	_, lists, err := kube.Discovery().ServerGroupsAndResources()
	n := 0
	for _, l := range lists {
		n += len(l.APIResources)
	}
	t.Log(len(lists), n, err)
	begin = time.Now()
	for range 1000 {
		u.SetName("")
		u.SetGenerateName("x-")
		if _, err := client.Resource(cronTabs).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("1000 creates %v", time.Since(begin))
}
