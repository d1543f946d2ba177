package offline

import (
	"fmt"
	"net/http"
	"net/url"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// newClient returns the client with which a server calls a webhook, except that all requests
// go to the handler (apiserver/pkg/util/webhook/client.go, HookClient).
func newClient(h http.Handler, name string, to admissionregistrationv1.WebhookClientConfig) (*rest.RESTClient, error) {
	hooks := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme, apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme,
	} {
		if err := add(hooks); err != nil {
			return nil, err
		}
	}
	config := &rest.Config{Host: "https://" + name, Transport: transport{handler: h, noAddress: to.URL == nil && to.Service == nil}, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{
		Serializer: serializer.NewCodecFactory(hooks).LegacyCodec(
			admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion, apiextensionsv1beta1.SchemeGroupVersion),
	})
	switch service := to.Service; {
	case to.URL != nil:
		u, err := url.Parse(*to.URL)
		if err != nil {
			return nil, err
		}
		config.Host, config.APIPath = u.Scheme+"://"+u.Host, u.Path
	case service != nil:
		port := int32(443)
		if service.Port != nil {
			port = *service.Port
		}
		config.Host = fmt.Sprintf("https://%s.%s.svc:%d", service.Name, service.Namespace, port)
		if service.Path != nil {
			config.APIPath = *service.Path
		}
	}
	return rest.UnversionedRESTClientFor(config)
}
