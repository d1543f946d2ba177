// Package resource serves kinds from an aggregated API server, as their CustomResourceDefinitions
// (CRDs) describe them.
//
// Use it instead of a CRD if the etcd of the cluster cannot handle its objects or writes, or if Go
// code for validation and admission must run in the server itself instead of in webhooks. Otherwise
// prefer a CRD, for which you operate no server and no etcd. examples/pizza-apiserver has a complete
// server, and compares both.
//
// A [Resource] is made of the same definition that would be applied to a cluster, and takes all from it
// that a CRD says: names, scope, columns, selectable fields, the subresources status and scale, and in
// each version the schema with its defaults, bounds and CEL rules. Conversions are those of the Go types
// in a scheme, and a function for each version may add to the rules:
//
//	definition, err := schema.Parse(pizzaYAML)
//	pizzas, err := resource.New[*v1beta1.Pizza](s, definition,
//		resource.Validate(validateV1alpha1),
//		resource.Validate(validateV1beta1))
//
// The type argument is the hub of the conversions. The validating functions return the field errors
// of a Pizza in their version. The scheme s has all versions, their conversions (here toHub and
// fromHub), and the types of [scheme.APIServer]:
//
//	s, err := scheme.New(
//		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
//		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}))
//	reg := conversion.NewRegistry(s)
//	err = conversion.AddSpoke(reg, toHub, fromHub)
//	err = scheme.Install(s, scheme.APIServer(), scheme.Functions(reg.AddToScheme))
//
// Create the server with the packages pkg/server, pkg/server/options and pkg/util/compatibility of
// k8s.io/apiserver. The options o are flags in a program:
//
//	o := options.NewRecommendedOptions("/registry", nil)
//	err = o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil)
//	config := server.NewRecommendedConfig(serializer.NewCodecFactory(s))
//	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
//	resource.OpenAPI(&config.Config, "pizzas")
//	err = o.ApplyTo(config)
//	srv, err := config.Complete().New("pizzas", server.NewEmptyDelegate())
//	err = resource.Install(srv, &config.Config, pizzas)
//	return srv.PrepareRun().RunWithContext(ctx)
//
// In a test, RESTOptions of package schema/apiservertest replaces etcd by a store in memory. Assign it to
// config.RESTOptionsGetter before ApplyTo, and leave out what needs a cluster: set o.Etcd, o.CoreAPI,
// o.Authentication, o.Authorization and o.Admission to nil, o.Features.EnablePriorityAndFairness to false,
// o.SecureServing.Listener to a listener of port 0, and config.Authorization.Authorizer to one that allows all.
// The example of this package does so.
//
// # The way of a request
//
// The server's own code for custom resources handles each request, in the same order: an object is decoded,
// pruned and defaulted by the schema of its version, goes through the mutating admission plugins, is validated
// by the schema and its rules (with ratcheting on update), then by the function of [Validate], and by the
// validating admission plugins. It is unstructured until then, so that a field that is absent is not mistaken
// for one that is zero. It is converted by way of its Go types only if the version of the request is not the
// storage version, and is stored as JSON.
//
// docs/moving-to-an-aggregated-server.md moves stored objects from a CRD to such a server, and back.
//
// # Limitations
//
// The package supports no storage other than etcd, no subresources other than status and scale, no strategic merge
// patch, and no Protobuf, not even of errors and discovery. A scale is read and written in autoscaling/v1 only. As for custom
// resources, the watch cache has each object once for each served version.
//
// Requests with a method that a path does not have are refused with 405, as for built-in resources: a PUT or PATCH without a
// name, which a custom resource refuses with 400, and a POST with a name, which it takes for one without.
//
// [scheme.APIServer]: https://pkg.go.dev/github.com/crdkit/crdkit/scheme#APIServer
package resource
