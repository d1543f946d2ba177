// Package gofuzz adapts functions of github.com/google/gofuzz for package roundtrip:
//
//	roundtrip.Test(t, reg, roundtrip.Funcs(gofuzz.Funcs(clusterFuncs)...))
//
// Use it if your tests already have such functions, which need no changes. Write new functions for
// sigs.k8s.io/randfill, which needs no adapter, and with which Kubernetes 1.33 replaced the
// archived gofuzz.
//
// # Limitations
//
// A method Fuzz, with which a type fills itself, is only called for values within a value that one
// of the functions fills. For other values, add a function
// func(v *T, c fuzz.Continue) { v.Fuzz(c) }.
package gofuzz
