// Package listkeys knows which members identify the elements of lists: what a schema
// says in x-kubernetes-list-map-keys.
//
//	var keys listkeys.Tree
//	err := keys.Add("spec.toppings", "name")
//
// It does not look into objects.
package listkeys
