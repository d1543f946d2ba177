package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// converter calls the conversion webhook: webhookConverter of
// apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
type converter struct {
	client        *rest.RESTClient
	reviewVersion string // v1 or v1beta1
}

func (b *builder) newConverter() (*converter, error) {
	spec := b.crd.Spec.Conversion
	if b.convert == nil {
		if spec.Strategy == apiextensionsv1.WebhookConverter {
			return nil, errors.New("a webhook converts the objects: it is missing, see offline.Convert")
		}
		return nil, nil
	}
	c := &converter{reviewVersion: "v1"}
	var address *string
	var service *serviceAddress
	if spec.Webhook != nil {
		known := func(v string) bool { return v == "v1" || v == "v1beta1" }
		i := slices.IndexFunc(spec.Webhook.ConversionReviewVersions, known)
		if i < 0 {
			return nil, fmt.Errorf("the conversion reviews %q are not supported: there are v1 and v1beta1", spec.Webhook.ConversionReviewVersions)
		}
		c.reviewVersion = spec.Webhook.ConversionReviewVersions[i]
		if config := spec.Webhook.ClientConfig; config != nil {
			address = config.URL
			if s := config.Service; s != nil {
				service = &serviceAddress{s.Namespace, s.Name, s.Path, s.Port}
			}
		}
	}
	var err error
	if c.client, err = newClient(b.convert, address, service, "convert."+b.crd.Name); err != nil {
		return nil, fmt.Errorf("the conversion webhook: %w", err)
	}
	return c, nil
}

// convert returns an object in another version. It is not coerced.
func (r *Resource) convert(ctx context.Context, in *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	to := r.gvk(version).GroupVersion()
	if in.GetAPIVersion() == to.String() {
		return in, nil
	}
	if gv := in.GroupVersionKind().GroupVersion(); !slices.ContainsFunc(r.crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return r.gvk(v.Name).GroupVersion() == gv
	}) {
		return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", gv)
	}
	in = in.DeepCopy()
	if r.converter == nil {
		in.SetAPIVersion(to.String())
		return in, nil
	}
	return r.converter.convert(ctx, in, to, r.reviewUID())
}

func (c *converter) convert(ctx context.Context, in *unstructured.Unstructured, to runtimeschema.GroupVersion, uid types.UID) (*unstructured.Unstructured, error) {
	from := in.GroupVersionKind()
	objects, err := c.ask(ctx, in, to, uid)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %v", from, err)
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(objects), 1)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(objects[0].Raw); err != nil {
		return nil, err
	}
	if got := out.GroupVersionKind().GroupVersion(); got != to {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", from, to, got)
	}
	if got := out.GetKind(); got != from.Kind {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid kind (expected %v, received %v)", from, from.Kind, got)
	}
	if err := checkConverted(in, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid object: %v", from, err)
	}
	if err := restoreMetadata(in, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid metadata: %v", from, err)
	}
	return out, nil
}

// ask sends the review: createConversionReviewObjects and getConvertedObjectsFromResponse.
func (c *converter) ask(ctx context.Context, in *unstructured.Unstructured, to runtimeschema.GroupVersion, uid types.UID) ([]runtime.RawExtension, error) {
	objects := []runtime.RawExtension{{Object: in}}
	var answer *apiextensionsv1.ConversionResponse
	if c.reviewVersion == "v1beta1" {
		question := &apiextensionsv1beta1.ConversionReview{
			Request:  &apiextensionsv1beta1.ConversionRequest{Objects: objects, DesiredAPIVersion: to.String(), UID: uid},
			Response: &apiextensionsv1beta1.ConversionResponse{},
		}
		review := &apiextensionsv1beta1.ConversionReview{}
		if err := c.client.Post().Body(question).Do(ctx).Into(review); err != nil {
			return nil, err
		}
		if review.Response != nil {
			answer = &apiextensionsv1.ConversionResponse{Result: review.Response.Result, ConvertedObjects: review.Response.ConvertedObjects}
		}
	} else {
		question := &apiextensionsv1.ConversionReview{
			Request:  &apiextensionsv1.ConversionRequest{Objects: objects, DesiredAPIVersion: to.String(), UID: uid},
			Response: &apiextensionsv1.ConversionResponse{},
		}
		review := &apiextensionsv1.ConversionReview{}
		if err := c.client.Post().Body(question).Do(ctx).Into(review); err != nil {
			return nil, err
		}
		if want, got := apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"), review.GroupVersionKind(); got != want {
			return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
		}
		if answer = review.Response; answer != nil && answer.UID != uid {
			return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, answer.UID)
		}
	}
	switch {
	case answer == nil:
		return nil, errors.New("no response provided")
	case answer.Result.Status == metav1.StatusSuccess:
		return answer.ConvertedObjects, nil
	case answer.Result.Message != "":
		return nil, errors.New(answer.Result.Message)
	}
	return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", answer.Result.Status)
}

// checkConverted is validateConvertedObject.
func checkConverted(in, out *unstructured.Unstructured) error {
	for _, c := range []struct{ what, before, after string }{
		{"kind", in.GetKind(), out.GetKind()},
		{"name", in.GetName(), out.GetName()},
		{"namespace", in.GetNamespace(), out.GetNamespace()},
		{"UID", string(in.GetUID()), string(out.GetUID())},
	} {
		if c.before != c.after {
			return fmt.Errorf("must have the same %s: %v != %v", c.what, c.before, c.after)
		}
	}
	return nil
}

// restoreMetadata keeps the metadata of the original but for labels and annotations: it is
// restoreObjectMeta.
func restoreMetadata(in, out *unstructured.Unstructured) error {
	answer, found := out.Object["metadata"]
	if !found {
		return errors.New("missing metadata in converted object")
	}
	answered, ok := answer.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", answer)
	}
	metadata := map[string]any{}
	if original, found := in.Object["metadata"]; found {
		if metadata, ok = runtime.DeepCopyJSONValue(original).(map[string]any); !ok {
			return fmt.Errorf("invalid metadata of type %T in input object", original)
		}
	}
	out.Object["metadata"] = metadata
	for _, name := range []string{"labels", "annotations"} {
		value := answered[name]
		if value == nil {
			delete(metadata, name)
			continue
		}
		texts, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
		}
		original, ok := metadata[name].(map[string]any)
		if !ok && metadata[name] != nil {
			return fmt.Errorf("invalid metadata.%s of type %T in original object", name, metadata[name])
		}
		changed := len(original) != len(texts)
		all := make(map[string]string, len(texts))
		for k, v := range texts {
			text, ok := v.(string)
			if !ok {
				return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
			}
			all[k] = text
			changed = changed || original[k] != v
		}
		if changed {
			errs := metav1validation.ValidateLabels(all, field.NewPath("metadata", "labels"))
			if name == "annotations" {
				errs = apivalidation.ValidateAnnotations(all, field.NewPath("metadata", "annotation"))
			}
			if len(errs) > 0 {
				return errs.ToAggregate()
			}
		}
		metadata[name] = texts
	}
	return nil
}
