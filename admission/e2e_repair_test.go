package admission_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

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
	convert, validate := url+"/convert", url+"/validate"

	group := v1alpha1.GroupVersion.Group
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "pizzas." + group}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "pizzas", Singular: "pizza", Kind: "Pizza", ListKind: "PizzaList"}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v1alpha1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		})
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &convert, CABundle: ca}}}
	definitions, err := apiextensions.NewForConfig(cp.Config())
	expect.NoError(t, err)
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	pizzas := client.Resource(v1alpha1.GroupVersion.WithResource("pizzas")).Namespace("default")
	for _, name := range []string{"repaired", "deleted"} {
		o := testobj.Parse(t, strings.Replace(annotated("{", "salami"), "margherita", name, 1))
		expect.Eventually(t, func() error { // once the definition is served
			_, err := pizzas.Create(t.Context(), o, metav1.CreateOptions{})
			return err
		})
	}

	core, err := kubernetes.NewForConfig(cp.Config())
	expect.NoError(t, err)
	_, err = core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "pizzas"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "pizzas.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &validate, CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update, admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1alpha1", "v1beta1"}, Resources: []string{"pizzas"}},
			}},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
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
	if err := annotate("repaired", fmt.Sprintf(`{%q:null}`, lossless.Annotation)); err != nil {
		t.Error(err)
	}
	if err := pizzas.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if got, err := client.Resource(v1beta1.GroupVersion.WithResource("pizzas")).Namespace("default").Get(t.Context(), "repaired", metav1.GetOptions{}); err != nil {
		t.Errorf("in the hub: %v, %v", got, err)
	}
}
