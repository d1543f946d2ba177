package offline

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// converter calls the conversion webhook: webhookConverter of
// apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
type converter struct {
	client        *rest.RESTClient
	reviewVersion string // v1 or v1beta1
}

// newConverter returns nil if no webhook converts.
func newConverter(crd *apiextensionsv1.CustomResourceDefinition, h http.Handler) (*converter, error) {
	spec := crd.Spec.Conversion
	if h == nil {
		if spec.Strategy == apiextensionsv1.WebhookConverter {
			return nil, errors.New("a webhook converts the objects: it is missing, see offline.Convert")
		}
		return nil, nil
	}
	c := &converter{reviewVersion: "v1"}
	var to admissionregistrationv1.WebhookClientConfig
	if w := spec.Webhook; w != nil {
		if c.reviewVersion = reviewVersion(w.ConversionReviewVersions); c.reviewVersion == "" {
			return nil, fmt.Errorf("the conversion reviews %q are not supported: there are v1 and v1beta1", w.ConversionReviewVersions)
		}
		if w.ClientConfig != nil {
			to.URL = w.ClientConfig.URL
			to.Service = (*admissionregistrationv1.ServiceReference)(w.ClientConfig.Service)
		}
	}
	var err error
	if c.client, err = newClient(h, "convert."+crd.Name, to); err != nil {
		return nil, fmt.Errorf("the conversion webhook: %w", err)
	}
	return c, nil
}

// ask sends a review, and returns what the webhook has converted:
// createConversionReviewObjects and getConvertedObjectsFromResponse.
func (c *converter) ask(ctx context.Context, in *unstructured.Unstructured, to runtimeschema.GroupVersion, uid types.UID) ([]runtime.RawExtension, error) {
	answer, err := c.send(ctx, &apiextensionsv1.ConversionReview{
		Request:  &apiextensionsv1.ConversionRequest{Objects: []runtime.RawExtension{{Object: in}}, DesiredAPIVersion: to.String(), UID: uid},
		Response: &apiextensionsv1.ConversionResponse{},
	})
	if err != nil {
		return nil, err
	}
	if c.reviewVersion == "v1" {
		if want, got := apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"), answer.GroupVersionKind(); got != want {
			return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
		}
		if r := answer.Response; r != nil && r.UID != uid {
			return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
		}
	}
	switch r := answer.Response; {
	case r == nil:
		return nil, errors.New("no response provided")
	case r.Result.Status == metav1.StatusSuccess:
		return r.ConvertedObjects, nil
	case r.Result.Message != "":
		return nil, errors.New(r.Result.Message)
	default:
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", r.Result.Status)
	}
}

// send sends a review, in the version that the webhook is to get, and returns the answer.
func (c *converter) send(ctx context.Context, question *apiextensionsv1.ConversionReview) (*apiextensionsv1.ConversionReview, error) {
	if c.reviewVersion == "v1" {
		answer := &apiextensionsv1.ConversionReview{}
		return answer, c.client.Post().Body(question).Do(ctx).Into(answer)
	}
	body, into := &apiextensionsv1beta1.ConversionReview{}, &apiextensionsv1beta1.ConversionReview{}
	if err := recode(question, body); err != nil {
		return nil, err
	}
	if err := c.client.Post().Body(body).Do(ctx).Into(into); err != nil {
		return nil, err
	}
	answer := &apiextensionsv1.ConversionReview{}
	return answer, recode(into, answer)
}
