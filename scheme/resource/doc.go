// Package resource serves kinds from an aggregated API server.
//
// Use it instead of a CustomResourceDefinition (CRD) if the etcd of the cluster cannot handle its
// objects or writes, or if Go code for defaults, validation and admission must run in the server
// itself instead of in webhooks. Otherwise prefer a CRD, for which you operate no server and no
// etcd. examples/pizza-apiserver has a complete server, and compares both.
//
// A [Resource] stores the objects of one kind, with the features of a custom resource: the status
// subresource, the generation, tables, short names, categories, field selectors and server-side
// apply. Its Go type is the hub of the conversions, which may be a served version:
//
//	pizzas, err := resource.New[*v1beta1.Pizza](s, "pizzas",
//		resource.ShortNames("pz"),
//		resource.Columns(cells, metav1.TableColumnDefinition{Name: "Cost", Type: "number"}),
//		resource.Validate(validateV1alpha1),
//		resource.Validate(validateV1beta1))
//
// The function cells returns the cells of a v1beta1.Pizza, and the validating functions return the
// field errors of a Pizza in their version. The scheme s must have the hub and all served versions,
// their conversions and defaults (here the functions toHub, fromHub and setDefaults), and the types
// of [scheme.APIServer]:
//
//	s, err := scheme.New(
//		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
//		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}))
//	reg := conversion.NewRegistry(s)
//	err = conversion.AddSpoke(reg, toHub, fromHub)
//	err = scheme.Install(s, scheme.APIServer(), scheme.Default(setDefaults), scheme.Functions(reg.AddToScheme))
//
// After New, create the server with the packages pkg/server, pkg/server/options and
// pkg/util/compatibility of k8s.io/apiserver. The CRDs only provide schemas (see [OpenAPI]):
//
//	codec, versions := resource.Codec(s)
//	o := options.NewRecommendedOptions("/registry", codec)
//	o.Etcd.StorageConfig.EncodeVersioner = versions
//	config := server.NewRecommendedConfig(serializer.NewCodecFactory(s))
//	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
//	err = resource.OpenAPI(&config.Config, s, "pizzas", crds...)
//	err = o.ApplyTo(config)
//	srv, err := config.Complete().New("pizzas", server.NewEmptyDelegate())
//	err = resource.Install(srv, config.RESTOptionsGetter, s, pizzas)
//
// # Limitations
//
// The package supports no storage other than etcd, no subresource other than status, and no
// Protobuf.
//
// [scheme.APIServer]: https://pkg.go.dev/github.com/crdkit/crdkit/scheme#APIServer
package resource
