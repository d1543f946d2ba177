package apiservertest

import (
	"net/http"

	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// webhooks calls webhooks, in process if there is a handler.
type webhooks struct{ transport http.RoundTripper } // to the handler, or nil

// wrap is a [webhook.AuthenticationInfoResolverWrapper]. It has the requests answered by the handler if there is one.
func (h webhooks) wrap(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	if h.transport == nil {
		return delegate
	}
	config := &rest.Config{}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return h.transport })
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc:        func(string) (*rest.Config, error) { return config, nil },
		ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return config, nil },
	}
}
