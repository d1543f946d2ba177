package apiservertest

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// webhooks calls webhooks, in process if there is a handler.
type webhooks struct{ transport http.RoundTripper } // to the handler, or nil

// wrap is a [webhook.AuthenticationInfoResolverWrapper].
func (h webhooks) wrap(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
			return h.client(delegate.ClientConfigFor(hostPort))
		},
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			return h.client(delegate.ClientConfigForService(name, namespace, port))
		},
	}
}

// client has the requests answered by the handler if there is one.
func (h webhooks) client(config *rest.Config, err error) (*rest.Config, error) {
	if err == nil && h.transport != nil {
		config.Wrap(func(http.RoundTripper) http.RoundTripper { return h.transport })
	}
	return config, err
}

// services finds webhooks behind Services.
type services struct{ *Server }

var _ webhook.ServiceResolver = services{}

// ResolveEndpoint returns the DNS name of a Service for the handler. Without a handler, it returns the
// external name, as kube-apiserver does (apiserver/pkg/util/proxy/proxy.go, ResolveCluster). A
// Service of another type needs Pods, which this server does not run.
func (s services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if s.webhooks.transport != nil {
		return &url.URL{Scheme: "https", Host: fmt.Sprintf("%s.%s.svc:%d", name, namespace, port)}, nil
	}
	store := s.builtins[corev1.SchemeGroupVersion.WithKind("Service")]
	obj, err := store.Get(genericapirequest.WithNamespace(s.life, namespace), name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	spec := obj.(*corev1.Service).Spec
	if spec.Type != corev1.ServiceTypeExternalName {
		return nil, fmt.Errorf("service %s/%s: type is %q, and there are no Pods: expected ExternalName", namespace, name, spec.Type)
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(spec.ExternalName, strconv.Itoa(int(port)))}, nil
}
