package envtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crdkit/crdkit/schema/apiservertest"
)

// CRDInstallOptions, WebhookInstallOptions and User are upstream's types.
type (
	CRDInstallOptions     = envtest.CRDInstallOptions
	WebhookInstallOptions = envtest.WebhookInstallOptions
	User                  = envtest.User
)

// InstallCRDs is upstream's function. The API server delays the first objects of these CRDs by two seconds.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return envtest.InstallCRDs(config, options)
}

// Environment is an API server in this process. Fields without a comment mean the same as upstream's.
type Environment struct {
	Options []apiservertest.Option // beyond upstream's, such as apiservertest.RBAC
	Server  *apiservertest.Server  // set by Start

	Scheme                *runtime.Scheme
	Config                *rest.Config
	CRDInstallOptions     CRDInstallOptions // only CRDs, Paths and Scheme have an effect
	WebhookInstallOptions WebhookInstallOptions
	ErrorIfCRDPathMissing bool
	CRDs                  []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths     []string
	UseExistingCluster    *bool // must not be true

	// The other fields are ignored, because there are no binaries.

	BinaryAssetsDirectory, DownloadBinaryAssetsVersion, DownloadBinaryAssetsIndexURL string
	DownloadBinaryAssets, AttachControlPlaneOutput                                   bool
	ControlPlaneStartTimeout, ControlPlaneStopTimeout                                time.Duration

	stop context.CancelFunc // nil if the server is not running
}

// Start starts the server, and returns a configuration with all rights. It sets Server, Config, CRDs and the fields of
// WebhookInstallOptions, as upstream. Start returns an error if the environment is running, if a path is missing, or if
// the server rejects an object, which the error names.
func (te *Environment) Start() (*rest.Config, error) {
	if te.stop != nil {
		return nil, errors.New("envtest: the environment is running: call Stop first")
	}
	if te.UseExistingCluster != nil && *te.UseExistingCluster {
		return nil, errors.New("envtest: UseExistingCluster is true, which needs sigs.k8s.io/controller-runtime/pkg/envtest")
	}
	if err := te.read(); err != nil {
		return nil, errors.Join(err, te.Stop())
	}
	ctx, stop := context.WithCancel(context.Background())
	te.stop = stop
	objects := []apiservertest.Option{last(te.CRDs), last(te.WebhookInstallOptions.MutatingWebhooks), last(te.WebhookInstallOptions.ValidatingWebhooks)}
	server, err := apiservertest.New(ctx, append(objects, te.Options...)...)
	if err != nil {
		return nil, errors.Join(err, te.Stop())
	}
	te.Server, te.Config = server, server.Config()
	return te.Config, nil
}

// last returns the last object of each name, with which upstream updates the others. Another Start reads all again.
func last[T client.Object](objects []T) apiservertest.Option {
	byName := map[string]runtime.Object{}
	for _, obj := range objects {
		byName[obj.GetName()] = obj
	}
	return apiservertest.Objects(slices.Collect(maps.Values(byName))...)
}

// Stop stops the server, and removes the certificates of the webhooks.
func (te *Environment) Stop() error {
	if te.stop != nil {
		te.stop()
		te.stop = nil
	}
	return te.WebhookInstallOptions.Cleanup()
}

// read reads the files, and registers the webhooks at the local port, with upstream's code.
func (te *Environment) read() error {
	if err := te.WebhookInstallOptions.PrepWithoutInstalling(); err != nil {
		return fmt.Errorf("envtest: webhooks in %q: %w", te.WebhookInstallOptions.Paths, err)
	}
	options := te.CRDInstallOptions
	options.Scheme = cmp.Or(options.Scheme, te.Scheme) // nil is scheme.Scheme
	options.Paths = slices.Concat(options.Paths, te.CRDDirectoryPaths)
	options.ErrorIfPathMissing, options.WebhookOptions = te.ErrorIfCRDPathMissing, te.WebhookInstallOptions
	options.CRDs = []*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range slices.Concat(te.CRDInstallOptions.CRDs, te.CRDs) {
		options.CRDs = append(options.CRDs, crd.DeepCopy())
	}
	// InstallCRDs is the only exported function that sets conversion webhooks. Without a configuration, it returns the
	// CRDs with an error, because it cannot create them. If there is another error, it returns nil.
	crds, err := envtest.InstallCRDs(nil, options)
	if crds == nil {
		return fmt.Errorf("envtest: CRDs in %q: %w", options.Paths, err)
	}
	te.CRDs = crds
	return nil
}

// AuthenticatedUser is a user that [Environment.AddUser] has added.
type AuthenticatedUser struct{ config *rest.Config }

// Config returns the configuration of the user's clients.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// AddUser returns a user with a copy of the base configuration, which may be nil. Call it after Start. Without the
// option [apiservertest.RBAC], the user may do everything. The error is always nil.
func (te *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	config := rest.CopyConfig(cmp.Or(base, te.Config))
	config.Host, config.Transport = te.Config.Host, te.Config.Transport
	config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: user.Groups}
	return &AuthenticatedUser{config}, nil
}
