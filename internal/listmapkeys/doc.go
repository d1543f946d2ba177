// Package listmapkeys knows which members identify the elements of lists: what a schema
// says in x-kubernetes-list-map-keys, and what the Go types of Kubernetes say.
//
//	keys := listmapkeys.OfSchema(schema)
//
// It does not look into objects.
package listmapkeys
