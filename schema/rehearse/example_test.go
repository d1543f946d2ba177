package rehearse_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
)

// The first release accepts any text as an address. The second has another version, with host and
// port, and converts.
func ExampleRun() {
	const head = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: probes.example.com},
		spec: {group: example.com, scope: Cluster, names: {plural: probes, kind: Probe}, `
	const v1alpha1 = `{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
		address: {type: string}}}}}`
	const v1 = `{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {
		host: {type: string}, port: {type: integer}}}}}`
	const webhook = `conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://localhost/"}}}, `
	old, err1 := schema.Parse([]byte(head + `versions: [` + v1alpha1 + `]}}`))
	upgraded, err2 := schema.Parse([]byte(head + webhook + `versions: [` + v1alpha1 + `, ` + v1 + `]}}`))
	reg := conversion.NewRegistry(runtime.NewScheme())
	spoke := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Probe"}
	err3 := conversion.AddFields(reg, spoke, "v1", conversion.Split("address", ":", conversion.Part{Path: "host"}, conversion.Part{Path: "port", Integer: true}))
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	stored := func(yield func(rehearse.Object, error) bool) {
		for i, address := range []string{"localhost:80", "localhost:443", "localhost"} {
			text := fmt.Sprintf(`{apiVersion: example.com/v1alpha1, kind: Probe, metadata: {name: probe-%d}, address: "%s"}`, i, address)
			if !yield(rehearse.Object{Text: []byte(text)}, nil) {
				return
			}
		}
	}

	report, err := rehearse.Run(context.Background(),
		schema.Release{Definitions: []*schema.Definition{old}},
		schema.Release{Definitions: []*schema.Definition{upgraded}, Handler: conversion.NewHandler(reg)},
		stored)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("lost:", report.Lost())
	for _, f := range report.Findings {
		fmt.Println(f)
	}
	// Output:
	// lost: true
	// Probe.example.com v1: unreadable after the upgrade: conversion webhook for example.com/v1alpha1, Kind=Probe failed: request.objects[]: cannot convert Probe from example.com/v1alpha1 to example.com/v1: address: Invalid value: …: must be <host>:<port, an integer> (1 object)
	//     for example probe-2
	//     error: conversion webhook for example.com/v1alpha1, Kind=Probe failed: request.objects[0]: cannot convert Probe probe-2 from example.com/v1alpha1 to example.com/v1: address: Invalid value: "localhost": must be <host>:<port, an integer>
	//     stored: {"address":"localhost","apiVersion":"example.com/v1alpha1","kind":"Probe","metadata":{"name":"probe-2"}}
}
