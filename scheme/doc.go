// Package scheme answers one question: which groups, versions and kinds exist?
//
// New builds a [runtime.Scheme], the registry that every Kubernetes client,
// informer and codec already takes, from the Go types of an API:
//
//	s, err := scheme.New(
//		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
//		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
//	)
//
// Where a scheme built by hand accepts nearly everything and fails at the first
// request that needs what is missing, New checks the types when the program
// starts, and reports all mistakes in one error: a kind without its list, a
// struct field without its JSON tag, two types for one kind, one type for two.
// Check does it for a scheme that was built elsewhere, which serves the other
// packages just as well.
//
// The package does not convert and does not default: conversions live in
// package conversion, defaults in the schema of the CustomResourceDefinition.
package scheme
