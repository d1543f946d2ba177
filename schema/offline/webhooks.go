package offline

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// webhooks calls webhooks: those behind Services always, and those at URLs too, in process, if
// there is a handler.
type webhooks struct {
	handler http.Handler
	done    context.Context
	calls   *callLog
}

// ResolveEndpoint implements [webhook.ServiceResolver].
func (webhooks) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return &url.URL{Scheme: "https", Host: fmt.Sprintf("%s.%s.svc:%d", name, namespace, port)}, nil
}

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

// client has the requests recorded, and answered by the handler if there is one.
func (h webhooks) client(config *rest.Config, err error) (*rest.Config, error) {
	if err != nil {
		return config, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if h.handler != nil {
			next = transport{h.handler, h.done}
		}
		return recorder{next, h.calls}
	})
	return config, nil
}
