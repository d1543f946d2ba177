// Package resource serves kinds from an aggregated API server.
//
// A [Resource] stores the objects of one kind in etcd. It has the features of a custom resource:
// the status subresource, the generation, tables, short names, categories, field selectors and
// server-side apply. Create it from a Go type and from typed functions:
//
//	pizzas, err := resource.New[*v1beta1.Pizza](s, "pizzas",
//		resource.ShortNames("pz"),
//		resource.Columns(cells, metav1.TableColumnDefinition{Name: "Cost", Type: "number"}),
//		resource.Validate(validateV1alpha1),
//		resource.Validate(validateV1beta1))
//
// The Go type is the hub of the conversions. It may be a served version, so an API that has a
// conversion webhook needs no internal version. If the API has an internal version, use the Go
// type of that version instead.
//
// The scheme must contain the hub and all served versions, their conversions, their defaults, and the
// types of [scheme.APIServer]. Call these functions before [New]:
//
//	s, err := scheme.New(
//		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
//		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}))
//	reg := conversion.NewRegistry(s)
//	err = conversion.AddSpoke(reg, toHub, fromHub)
//	err = scheme.Install(s, scheme.APIServer(), scheme.Default(setDefaults), scheme.Functions(reg.AddToScheme))
//
// After New, configure and create the server with k8s.io/apiserver. Package compatibility is
// k8s.io/apiserver/pkg/util/compatibility:
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
// examples/pizza-apiserver is a complete server.
//
// All versions of a kind share one store. Objects are stored in the most preferred version that
// has the kind.
//
// # Limitations
//
// The package supports no storage other than etcd, no subresource other than status, and no
// Protobuf.
//
// [scheme.APIServer]: https://pkg.go.dev/github.com/crdkit/crdkit/scheme#APIServer
package resource
