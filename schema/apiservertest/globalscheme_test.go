package apiservertest_test

import (
	"os"
	"os/exec"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// Tests of operators add types to client-go's scheme, which is the process's. Each case runs in a
// process of its own.
func TestStart_GlobalScheme(t *testing.T) {
	const environment = "OFFLINE_TEST_ADDS"
	cases := map[string]func(*runtime.Scheme) error{
		"the suite's own types": func(s *runtime.Scheme) error {
			s.AddKnownTypes(resource.GroupVersion(), &CronTab{}, &CronTabList{})
			metav1.AddToGroupVersion(s, resource.GroupVersion())
			return nil
		},
		"CustomResourceDefinitions": apiextensionsv1.AddToScheme, // importing envtest does so
	}
	if add := cases[os.Getenv(environment)]; add != nil {
		expect.NoError(t, add(clientgoscheme.Scheme))
		servesDefinition(t)
		return
	}
	for name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStart_GlobalScheme$")
			command.Env = append(os.Environ(), environment+"="+name)
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// servesDefinition tests that CronTabs are pruned, defaulted, validated and converted.
func servesDefinition(t *testing.T) {
	hooks, err := operator()
	expect.NoError(t, err)
	s := apiservertest.Start(t, apiservertest.Webhooks(hooks), apiservertest.Manifests([]byte(policyYAML)))
	out, err := clientOf(s, "v1beta1").Create(t.Context(), cronTab(t, "v1beta1", "a", "{cron: x, unknown: y}"), metav1.CreateOptions{})
	expect.NoError(t, err)
	if got := testobj.Field(t, out, "spec"); got != `{"cron":"x","replicas":1}` {
		t.Errorf("created %s", got)
	}
	if _, err := clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "b", "{replicas: -1}"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want that -1 replicas are invalid", err)
	}
	_, err = kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	expect.NoError(t, err)
}

// A CRD does not take the place of built-in kinds in its group version, and is not served there.
func TestStart_DefinitionInABuiltInVersion(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.networking.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: networking.k8s.io
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`)))
	client := dynamic.NewForConfigOrDie(s.Config())
	_, err := client.Resource(networkingv1.SchemeGroupVersion.WithResource("ingresses")).List(t.Context(), metav1.ListOptions{})
	expect.NoError(t, err)
	if _, err := client.Resource(networkingv1.SchemeGroupVersion.WithResource("widgets")).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that widgets are not found, as in a cluster", err)
	}
}
