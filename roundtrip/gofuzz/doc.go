// Package gofuzz adapts functions of github.com/google/gofuzz for package roundtrip:
//
//	roundtrip.Test(t, reg, roundtrip.Funcs(gofuzz.Funcs(clusterFuncs)...))
//
// Use it if your tests already have such functions. They need no changes. The library gofuzz is
// archived, and Kubernetes replaced it with sigs.k8s.io/randfill in 1.33. Write new functions for
// randfill, which needs no adapter.
//
// # Limitations
//
// If a type fills itself with a method Fuzz, the method is only called for values within a value
// that one of the functions fills. For other values, add a function
// func(v *T, c fuzz.Continue) { v.Fuzz(c) }.
package gofuzz
