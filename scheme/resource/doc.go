// Package resource serves kinds from an aggregated API server.
//
// A [Resource] is the storage of one kind in etcd, with everything that a custom resource has: status
// subresource, generation, tables, short names and categories, field selectors, and server-side
// apply. It is made from a Go type, usually of the internal version, and typed functions:
//
//	pizzas, err := resource.New[*restaurant.Pizza](scheme, "pizzas",
//		resource.ShortNames("pz"),
//		resource.Columns(cells, metav1.TableColumnDefinition{Name: "Cost", Type: "number"}),
//		resource.Validate(validateV1alpha1),
//		resource.Validate(validateV1beta1))
//	err = resource.Install(server, config.RESTOptionsGetter, scheme, pizzas, toppings)
//
// The scheme has all served versions, their conversions (conversion.Registry.AddToScheme), defaults,
// and the types of [scheme.APIServer]. [Codec] returns the codec of the storage, and [OpenAPI] gives
// the server the schemas that controller-gen writes.
//
// All versions of a kind share one store. Objects are stored in the most preferred version that has
// the kind.
//
// The package does not define other storage than etcd, other subresources than status, or protobuf.
//
// [scheme.APIServer]: https://pkg.go.dev/github.com/crdkit/crdkit/scheme#APIServer
package resource
