//go:build unix

package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/test/expect"
)

func TestControlPlane(t *testing.T) {
	started := time.Now()
	cp := ForTest(t)
	t.Logf("ready after %v", time.Since(started))
	admin := kubernetes.NewForConfigOrDie(cp.Config())

	t.Run("knows its version", func(t *testing.T) {
		version, err := admin.ServerVersion()
		expect.NoError(t, err)
		want := version.GitVersion
		if os.Getenv("KUBEBUILDER_ASSETS") == "" {
			want = "v1.37.2" // the binaries are ours
		}
		if diff := cmp.Diff([]string{want, want}, []string{version.GitVersion, cp.Version()}); diff != "" {
			t.Errorf("version (-want +got):\n%s", diff)
		}
		if got := fmt.Sprintf("v1.%d", cp.Minor()); !strings.HasPrefix(want, got+".") {
			t.Errorf("%s is minor release %s", want, got)
		}
	})

	t.Run("stores a namespace", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pizzeria"}}
		_, err := admin.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		expect.NoError(t, err)
	})

	t.Run("serves a custom resource", func(t *testing.T) {
		crds := apiextensions.NewForConfigOrDie(cp.Config()).ApiextensionsV1().CustomResourceDefinitions()
		_, err := crds.Create(t.Context(), pizzaCRD(), metav1.CreateOptions{})
		expect.NoError(t, err)
		expect.EventuallyTrue(t, "the pizzas are served", func() bool {
			_, err := admin.Discovery().RESTClient().Get().AbsPath("/apis/example.com/v1/pizzas").DoRaw(t.Context())
			return err == nil
		})
	})

	t.Run("knows a user by name and groups", func(t *testing.T) {
		user := userClient(t, cp, "luigi", "cooks", "drivers")
		review, err := user.AuthenticationV1().SelfSubjectReviews().Create(
			t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		expect.NoError(t, err)
		got := review.Status.UserInfo
		got.Extra = nil // the certificate's fingerprint
		want := authenticationv1.UserInfo{
			Username: "luigi",
			Groups:   []string{"cooks", "drivers", "system:authenticated"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("user (-want +got):\n%s", diff)
		}
	})

	t.Run("forbids a user what RBAC does not grant", func(t *testing.T) {
		list := func() error {
			_, err := userClient(t, cp, "mario", "waiters").CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
			return err
		}
		if err := list(); !apierrors.IsForbidden(err) {
			t.Fatalf("without a role, listing gave %v, want forbidden", err)
		}
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "waiters"},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
		}
		_, err := admin.RbacV1().Roles("default").Create(t.Context(), role, metav1.CreateOptions{})
		expect.NoError(t, err)
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "waiters"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "waiters"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "waiters"}},
		}
		_, err = admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{})
		expect.NoError(t, err)
		expect.EventuallyTrue(t, "the waiter may list", func() bool { return list() == nil })
	})

	t.Run("answers kubectl", func(t *testing.T) {
		kubeconfig, err := cp.Kubeconfig(cp.Config())
		expect.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), cp.Kubectl(), "get", "namespace", "default", "--output=name")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
		got, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		if diff := cmp.Diff("namespace/default\n", string(got)); diff != "" {
			t.Errorf("kubectl (-want +got):\n%s", diff)
		}
	})

	t.Run("stops quickly under an open watch", func(t *testing.T) {
		_, err := admin.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		all := remainsOf(cp)
		stopping := time.Now()
		expect.NoError(t, cp.Stop())
		t.Logf("stopped after %v", time.Since(stopping))
		if state := cp.apiserver.cmd.ProcessState; !state.Success() {
			t.Errorf("the API server had to be killed: %v", state)
		}
		if diff := cmp.Diff(remains{}, all.left()); diff != "" {
			t.Errorf("Stop left something behind (-want +got):\n%s", diff)
		}
	})
}

// Nothing is left of a real control plane when the program is killed.
func TestControlPlane_ProgramIsKilled(t *testing.T) {
	if _, err := findAssets(); err != nil {
		ForTest(t) // skips or fails
	}
	all := runToItsEnd(t, "kill")
	expect.EventuallyTrue(t, "all gone", func() bool { return cmp.Equal(remains{}, all.left()) })
}

func userClient(t *testing.T, cp *ControlPlane, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	cfg, err := cp.User(name, groups...)
	expect.NoError(t, err)
	return kubernetes.NewForConfigOrDie(cfg)
}

func pizzaCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "pizzas.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pizzas", Singular: "pizza", Kind: "Pizza", ListKind: "PizzaList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
}
