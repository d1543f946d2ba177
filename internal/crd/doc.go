// Package crd reads CustomResourceDefinitions from YAML or JSON, for packages that do without
// the Go types of apiextensions:
//
//	definitions, err := crd.Read(text)
//
// It checks what identifies a definition. What else the API server refuses is the business of
// package schema.
package crd
