package apiservertest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/plugin/pkg/audit/fake"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest/internal/memory"

	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
)

// Server is an API server for custom resources in this process. It is safe for concurrent use.
type Server struct {
	config   *rest.Config
	life     context.Context
	handler  http.Handler
	store    *kubernetes.Client
	builtins builtins
	webhooks webhooks
	version  serverVersion
	rules    ruleCheck
	rbac     *rbacAuthorizer // or nil
	faults   faults
	// kube and dynamic are the clients that the server itself has.
	kube    clientset.Interface
	dynamic dynamic.Interface
	// ended is closed when the server has ended. Its last goroutines end within milliseconds.
	ended chan struct{}
}

// Start starts a server for a test, and stops it when the test ends. If [New] returns an error,
// the test fails at once.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, opts...)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-s.ended
	})
	return s
}

// New starts a server that runs until the context is done, and returns when the server is ready and
// serves all initial objects. New returns an error if an option is invalid, if the server rejects
// an initial object, or if a webhook has a Service and there is no [Handler]. The error names the
// object, and no goroutine of the server is left.
func New(ctx context.Context, opts ...Option) (*Server, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	// Upstream exits the process if a server ends before its hooks for the start have run.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{
		store: memory.NewClient(life), life: life, version: o.version, faults: faults{watches: map[*userRequest]context.CancelFunc{}},
		rules: newRuleCheck(o.version), ended: make(chan struct{}),
	}
	if o.handler != nil {
		s.webhooks.transport = newTransport(life, o.handler)
	}
	if err := s.run(ctx, life, cancel, o); err != nil {
		cancel()
		return nil, fmt.Errorf("apiservertest: %w", err)
	}
	context.AfterFunc(ctx, cancel)
	return s, nil
}

// Config returns a client configuration whose requests do not leave the process. Their user is
// system:admin in the group system:masters, unless you set Impersonate. Every user may do
// everything, unless the server has the option [RBAC].
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// ServeHTTP serves the API to clients that do not use [Server.Config], such as kubectl. Requests
// need no credentials, and have the user of Config unless they impersonate another one.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// endpoint is what the storage asks about etcd.
type endpoint struct{}

func (endpoint) Endpoints() []string { return []string{"memory"} }
func (endpoint) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return &clientv3.StatusResponse{Version: memory.Version}, nil
}

// run builds the server, and runs it until life is done. It returns when the server is ready. If
// it returns an error, the server has ended, or was never run. If the server ends by itself, run
// calls end.
func (s *Server) run(ctx, life context.Context, end func(), o *options) error {
	front := newFront(&s.faults)
	s.handler = front
	s.config = &rest.Config{Host: "http://apiservertest", Transport: newTransport(life, front), QPS: -1}

	options := newRESTOptions(life, s.store)
	options.uncached = o.uncached
	config, err := s.newConfig(life, options, front.internal, o.rbac)
	if err != nil {
		return err
	}
	if o.audit != nil {
		setAudit(config.GenericConfig, o.audit)
	}
	if !config.GenericConfig.FeatureGate.Enabled(features.MutatingAdmissionPolicy) {
		front.once.Do(func() { close(front.fetched) }) // no plugin asks for OpenAPI
	}
	custom, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return err
	}
	server := custom.GenericAPIServer
	installDiscovery(server, config.GenericConfig.DiscoveryAddresses)
	var definitions []*apiextensionsv1.CustomResourceDefinition
	s.builtins, err = s.installBuiltins(server, config.GenericConfig, options)
	if err == nil {
		definitions, err = s.createFirst(life, config.GenericConfig.RESTOptionsGetter, o)
	}
	// The server runs even after an error: what its plugins have started ends with it.
	prepared := server.PrepareRun()
	front.server = server.Handler
	close(front.installed)
	// Both the server and its plugins poll until their informers have synced
	// (apiextensions-apiserver/pkg/apiserver/apiserver.go; client-go/tools/cache/shared_informer.go, WaitForCacheSync). A
	// poll that is too early costs each of them 100 ms more.
	custom.Informers.Start(life.Done())
	config.GenericConfig.SharedInformerFactory.Start(life.Done())
	custom.Informers.WaitForCacheSync(life.Done())
	config.GenericConfig.SharedInformerFactory.WaitForCacheSync(life.Done())
	failed := make(chan error, 1)
	go func() {
		defer close(s.ended)
		defer end()
		failed <- prepared.RunWithContext(life)
	}()
	ready := front.ready(life, failed)
	if err == nil {
		err = ready
	}
	if err == nil {
		err = front.publish(ctx, definitions)
	}
	if err == nil {
		err = s.createRest(ctx, o.objects, definitions)
	}
	if err != nil {
		end()
		<-s.ended
	}
	return err
}

// newConfig returns the configuration of the server: as kube-apiserver's, with admission
// plugins for namespaces, webhooks and policies.
func (s *Server) newConfig(ctx context.Context, options restOptions, token string, rbac bool) (*extensions.Config, error) {
	config := genericapiserver.NewRecommendedConfig(extensions.Codecs)
	gate, err := s.version.featureGate()
	if err != nil {
		return nil, err
	}
	config.EffectiveVersion, config.FeatureGate = s.version, gate
	config.EnableProfiling, config.EnableMetrics = false, false
	// The check of the log would leave a goroutine behind.
	ping := []healthz.HealthChecker{healthz.PingHealthz}
	config.HealthzChecks, config.LivezChecks, config.ReadyzChecks = ping, ping, ping
	config.ExternalAddress = "apiservertest:443"
	// The server insists on a listener. This one accepts no connection.
	config.SecureServing = &genericapiserver.SecureServingInfo{Listener: newPipes(context.WithoutCancel(ctx))}
	config.LoopbackClientConfig = s.Config()
	config.LoopbackClientConfig.BearerToken = token
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.Authentication.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: admin, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}}, true, nil
	})
	config.MergedResourceConfig = extensions.DefaultAPIResourceConfigSource()
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(extensions.Scheme, clientKinds())
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	options.codec = extensions.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion)
	config.RESTOptionsGetter = options

	if s.kube, err = clientset.NewForConfig(config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	config.SharedInformerFactory = informers.NewSharedInformerFactory(s.kube, 10*time.Minute)
	if rbac {
		s.rbac = newAuthorizer(config.SharedInformerFactory.Rbac().V1())
		config.Authorization.Authorizer = authorizer.AuthorizerFunc(s.rbac.authorizeForPolicy)
	}
	err = genericoptions.NewAdmissionOptions().ApplyTo(&config.Config, config.SharedInformerFactory, s.kube, s.dynamic,
		gate, config.EffectiveVersion, webhookinit.NewPluginInitializer(s.webhooks.wrap, services{s}))
	if err != nil {
		return nil, err
	}
	config.AdmissionControl = admission.NewChainHandler(config.AdmissionControl, s.rules)
	if rbac {
		config.AdmissionControl = admission.NewChainHandler(config.AdmissionControl, escalation{s})
		config.Authorization.Authorizer = authorizer.AuthorizerFunc(s.rbac.authorizeAndRemember)
	}
	options.codec = unstructured.UnstructuredJSONScheme
	return &extensions.Config{GenericConfig: config, ExtraConfig: extensions.ExtraConfig{
		CRDRESTOptionsGetter: options,
		MasterCount:          1,
		ServiceResolver:      services{s},
		AuthResolverWrapper:  s.webhooks.wrap,
	}}, nil
}

// setAudit has the requests of clients recorded.
func setAudit(config *genericapiserver.RecommendedConfig, record func(*audit.Event)) {
	config.AuditBackend = &fake.Backend{OnRequest: func(events []*audit.Event) {
		for _, event := range events {
			if event.User.Username != user.APIServerUser {
				record(event)
			}
		}
	}}
	config.AuditPolicyRuleEvaluator = policy.NewFakePolicyRuleEvaluator(audit.LevelMetadata, []audit.Stage{audit.StageRequestReceived, audit.StageResponseStarted})
}
