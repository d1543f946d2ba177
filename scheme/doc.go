// Package scheme builds and checks a [runtime.Scheme], which holds the groups, versions and
// kinds of an API.
//
// [New] builds a scheme from the Go types of your API. All Kubernetes clients, informers
// and codecs can use it:
//
//	s, err := scheme.New(
//		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
//		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
//	)
//
// New checks the types at startup, and returns one error that joins all mistakes, such as a kind
// without its list, a struct field without a JSON tag, two types for one kind, or two kinds for one
// type. A scheme that is built without New accepts most of these mistakes, and fails only when a
// request needs the missing part.
//
// [Check] checks a scheme that was built in another way. The other packages of this module
// accept any scheme.
//
// The package does not convert objects: see package conversion. Put defaults into the schema of the
// CustomResourceDefinition, which package scheme/resource enforces too, in an aggregated API server.
package scheme
