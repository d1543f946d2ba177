// Package gofuzz lets functions for github.com/google/gofuzz make the objects of package
// roundtrip, as they are:
//
//	roundtrip.Test(t, reg, roundtrip.Funcs(gofuzz.Funcs(clusterFuncs)...))
//
// Operators have years of such functions. The library is archived, and Kubernetes has left
// it for sigs.k8s.io/randfill in 1.33.
//
// # What it does not do
//
// It does not call the method Fuzz by which a type fills itself, except for values within
// what a function fills: give func(v *T, c fuzz.Continue) { v.Fuzz(c) } for others. New
// functions are better written for randfill, which needs no such package.
package gofuzz
