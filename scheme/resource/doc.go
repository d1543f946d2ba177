// Package resource serves kinds from an aggregated API server.
//
// A [Resource] stores the objects of one kind in etcd. It has the features of a custom resource:
// the status subresource, the generation, tables, short names, categories, field selectors and
// server-side apply. Create it from a Go type and from typed functions:
//
//	pizzas, err := resource.New[*v1beta1.Pizza](scheme, "pizzas",
//		resource.ShortNames("pz"),
//		resource.Columns(cells, metav1.TableColumnDefinition{Name: "Cost", Type: "number"}),
//		resource.Validate(validateV1alpha1),
//		resource.Validate(validateV1beta1))
//	err = resource.Install(server, config.RESTOptionsGetter, scheme, pizzas, toppings)
//
// The Go type is the hub of the conversions. It may be a served version, so an API that has a
// conversion webhook needs no internal version. If you have one, use its Go type instead.
//
// The scheme must contain the hub and all served versions, their conversions
// (conversion.Registry.AddToScheme), their defaults, and the types of [scheme.APIServer]. [Codec]
// returns the codec of the storage. [OpenAPI] adds the schemas that controller-gen generates.
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
