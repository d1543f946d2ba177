// Package aggregated runs an aggregated API server with the kinds of scheme/resource in this process, without etcd,
// admission plugins and authorization.
package aggregated

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/scheme/resource"
)

// InProcess has options and a configuration leave out what needs a cluster, etcd or files.
func InProcess(o *options.RecommendedOptions, config *server.RecommendedConfig, storage generic.RESTOptionsGetter) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o.Etcd, o.CoreAPI, o.Authentication, o.Authorization, o.Admission = nil, nil, nil, nil, nil
	o.Features.EnablePriorityAndFairness = false
	o.SecureServing.Listener, o.SecureServing.ServerCert.CertDirectory = listener, "" // in memory
	config.RESTOptionsGetter = storage
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	return nil
}

// Start runs a server with resources until the context is done, and returns the configuration of its clients when it is
// ready. The channel has the result of the server when it has stopped.
func Start(ctx context.Context, storage generic.RESTOptionsGetter, types *runtime.Scheme, resources ...*resource.Resource) (*rest.Config, <-chan error, error) {
	o := options.NewRecommendedOptions("/registry", nil)
	config := server.NewRecommendedConfig(serializer.NewCodecFactory(types))
	if err := InProcess(o, config, storage); err != nil {
		return nil, nil, err
	}
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return nil, nil, err
	}
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	resource.OpenAPI(&config.Config, "aggregated")
	if err := o.ApplyTo(config); err != nil {
		return nil, nil, err
	}
	srv, err := config.Complete().New("aggregated", server.NewEmptyDelegate())
	if err != nil {
		return nil, nil, err
	}
	if err := resource.Install(srv, &config.Config, resources...); err != nil {
		return nil, nil, err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.PrepareRun().RunWithContext(ctx) }()
	return srv.LoopbackClientConfig, stopped, Ready(ctx, srv.LoopbackClientConfig, stopped)
}

// Ready waits until a server is ready.
func Ready(ctx context.Context, config *rest.Config, stopped <-chan error) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	for {
		response, err := client.Get(config.Host + "/readyz")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-stopped:
			return fmt.Errorf("the aggregated API server has ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
