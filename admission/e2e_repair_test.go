package admission_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// TestRepair_OnAnAPIServer stores pizzas with an unreadable annotation in the spoke, before
// there is a webhook that would deny them, and then repairs one and deletes one.
func TestRepair_OnAnAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	reg := losslessRegistry(t)
	mux := http.NewServeMux()
	mux.Handle("/convert", conversion.NewHandler(reg))
	mux.Handle("/validate", admission.NewHandler(pizzaScheme(t), admission.ConvertWith(reg),
		admission.ValidateUpdate(allowUpdate[*v1beta1.Pizza]),
		admission.ValidateDelete(allow[*v1beta1.Pizza])))
	url, ca := webhooktest.Serve(t, mux)

	crd := testobj.Parse(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pizzas.restaurant.programming-kubernetes.info}
spec:
  group: restaurant.programming-kubernetes.info
  scope: Namespaced
  names: {plural: pizzas, singular: pizza, kind: Pizza, listKind: PizzaList}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: false, schema: *any}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %s/convert, caBundle: %s}}}
`, url, base64.StdEncoding.EncodeToString(ca)))
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	_, err = client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)
	pizzas := client.Resource(v1alpha1.GroupVersion.WithResource("pizzas")).Namespace("default")
	for _, name := range []string{"repaired", "deleted"} {
		o := testobj.Parse(t, strings.Replace(annotated("{", "salami"), "margherita", name, 1))
		expect.Eventually(t, func() error { // once the definition is served
			_, err := pizzas.Create(t.Context(), o, metav1.CreateOptions{})
			return err
		})
	}

	webhooktest.Register(t, cp.Config(), url, ca, `
kind: ValidatingWebhookConfiguration
metadata: {name: pizzas}
webhooks:
- name: pizzas.example.com
  clientConfig: {url: /validate}
  rules: [{operations: [UPDATE, DELETE], apiGroups: [restaurant.programming-kubernetes.info], apiVersions: [v1alpha1, v1beta1], resources: [pizzas]}]
`)
	annotate := func(name, annotations string) error {
		_, err := pizzas.Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":%s}}`, annotations), metav1.PatchOptions{})
		return err
	}
	for i := 0; ; i++ { // until the webhook is asked
		err := annotate("repaired", fmt.Sprintf(`{"a":"%d"}`, i))
		if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.annotations["+lossless.Annotation+"]: Invalid value") {
			break
		}
		expect.NoError(t, err)
	}
	expect.NoError(t, annotate("repaired", fmt.Sprintf(`{%q:null}`, lossless.Annotation)))
	expect.NoError(t, pizzas.Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
	if got, err := client.Resource(v1beta1.GroupVersion.WithResource("pizzas")).Namespace("default").Get(t.Context(), "repaired", metav1.GetOptions{}); err != nil {
		t.Errorf("in the hub: %v, %v", got, err)
	}
}
