package crontab_test

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/crontab"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
)

// cronTabs is the resource without a cluster. Some objects of it are stored already.
func cronTabs(stored ...[]byte) *offline.Resource {
	text, err := os.ReadFile("config/crd/stable.example.com_crontabs.yaml")
	if err != nil {
		panic(err)
	}
	definition, err := schema.Parse(text)
	if err != nil {
		panic(err)
	}
	reg, err := crontab.NewRegistry()
	if err != nil {
		panic(err)
	}
	resource, err := offline.New(definition, offline.Convert(conversion.NewHandler(reg)), offline.Stored(stored...))
	if err != nil {
		panic(err)
	}
	return resource
}

const minimal = `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"x","namespace":"default"},"spec":{"image":"backup"}}`

// The schema has defaults, for v1beta1 too.
func Example_defaults() {
	resource := cronTabs([]byte(minimal))
	for _, version := range []string{"v1", "v1beta1"} {
		out, err := resource.Get(context.Background(), version, "default", "x")
		if err != nil {
			panic(err)
		}
		u, err := out.Unstructured()
		fmt.Println(u.Object["spec"], err)
	}
	// Output:
	// map[cronSpec:5 0 * * * image:backup replicas:1 timeZone:Etc/UTC] <nil>
	// map[cronSpec:5 0 * * * image:backup replicas:1 timeZone:Etc/UTC] <nil>
}

// The rules of CEL, one of them a transition rule, and a bound for the scale.
func Example_rules() {
	for _, patch := range []string{
		`{"spec":{"host":"localhost"}}`,
		`{"spec":{"image":"report"}}`,
		`{"spec":{"replicas":11}}`,
	} {
		_, err := cronTabs([]byte(minimal)).Patch(context.Background(), "v1", "default", "x", types.MergePatchType, []byte(patch))
		fmt.Println(err)
	}
	// Output:
	// CronTab.stable.example.com "x" is invalid: spec: Invalid value: host and port belong together
	// CronTab.stable.example.com "x" is invalid: spec.image: Invalid value: "report": the image cannot be changed
	// CronTab.stable.example.com "x" is invalid: spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10
}

// Who writes v1beta1 is warned, and who reads an object of the first release is told what is
// wrong with it.
func Example_versions() {
	resource := cronTabs([]byte(`{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"typo","namespace":"default"},"spec":{"image":"report","hostPort":"localhost:http"}}`))
	_, err := resource.Get(context.Background(), "v1", "default", "typo")
	fmt.Println(err)
	out, err := resource.Patch(context.Background(), "v1beta1", "default", "typo", types.MergePatchType, []byte(`{"spec":{"hostPort":"[::1]:80"}}`))
	fmt.Println(out.Warnings, err)
	out, err = resource.Get(context.Background(), "v1", "default", "typo")
	if err != nil {
		panic(err)
	}
	u, err := out.Unstructured()
	fmt.Println(u.Object["spec"], err)
	// Output:
	// Internal error occurred: StorageError: corrupt object, Code: 7, Key: /stable.example.com/crontabs/default/typo, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=1: conversion webhook for stable.example.com/v1beta1, Kind=CronTab failed: request.objects[0]: cannot convert CronTab default/typo from stable.example.com/v1beta1 to stable.example.com/v1: spec.hostPort: Invalid value: "localhost:http": must be <host>:<port, an integer>
	// [stable.example.com/v1beta1 CronTab is deprecated; use v1, which has host and port instead of hostPort] <nil>
	// map[cronSpec:5 0 * * * host:[::1] image:report port:80 replicas:1 timeZone:Etc/UTC] <nil>
}
