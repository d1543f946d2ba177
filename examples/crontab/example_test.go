package crontab_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/crontab"
	"github.com/crdkit/crdkit/schema/apiservertest"
)

// cronTabs is the resource, without a cluster.
func cronTabs() []apiservertest.Option {
	definition, err := os.ReadFile("config/crd/stable.example.com_crontabs.yaml")
	if err != nil {
		panic(err)
	}
	reg, err := crontab.NewRegistry()
	if err != nil {
		panic(err)
	}
	return []apiservertest.Option{apiservertest.Manifests(definition), apiservertest.Handler(conversion.NewHandler(reg))}
}

// start starts a server in which an object is stored, and returns a client of each version.
// Warnings are printed.
func start(ctx context.Context, stored string) (v1, v1beta1 dynamic.ResourceInterface) {
	server, err := apiservertest.New(ctx, append(cronTabs(), apiservertest.Stored([]byte(stored)))...)
	if err != nil {
		panic(err)
	}
	config := server.Config()
	config.WarningHandler = rest.NewWarningWriter(os.Stdout, rest.WarningWriterOptions{Deduplicate: true})
	client := dynamic.NewForConfigOrDie(config)
	return of(client, "v1"), of(client, "v1beta1")
}

// of returns a client of one version.
func of(client dynamic.Interface, version string) dynamic.ResourceInterface {
	return client.Resource(schema.GroupVersionResource{Group: "stable.example.com", Version: version, Resource: "crontabs"}).Namespace("default")
}

const minimal = `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"x"},"spec":{"image":"backup"}}`

// The schema has defaults, for v1beta1 too.
func Example_defaults() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	v1, v1beta1 := start(ctx, minimal)
	for _, client := range []dynamic.ResourceInterface{v1, v1beta1} {
		u, err := client.Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			panic(err)
		}
		fmt.Println(u.Object["spec"])
	}
	// Output:
	// map[cronSpec:5 0 * * * image:backup replicas:1 timeZone:Etc/UTC]
	// Warning: stable.example.com/v1beta1 CronTab is deprecated; use v1, which has host and port instead of hostPort
	// map[cronSpec:5 0 * * * image:backup replicas:1 timeZone:Etc/UTC]
}

// The rules of CEL, one of them a transition rule, and a bound for the scale.
func Example_rules() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	v1, _ := start(ctx, minimal)
	for _, patch := range []string{
		`{"spec":{"host":"localhost"}}`,
		`{"spec":{"image":"report"}}`,
		`{"spec":{"replicas":11}}`,
	} {
		_, err := v1.Patch(ctx, "x", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		fmt.Println(err)
	}
	// Output:
	// CronTab.stable.example.com "x" is invalid: spec: Invalid value: host and port belong together
	// CronTab.stable.example.com "x" is invalid: spec.image: Invalid value: "report": the image cannot be changed
	// CronTab.stable.example.com "x" is invalid: spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10
}

// A client of v1beta1 is warned. The error for an object of the first release that
// cannot be converted names the field.
func Example_versions() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	v1, v1beta1 := start(ctx, `{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"typo"},"spec":{"image":"report","hostPort":"localhost:http"}}`)
	_, err := v1.Get(ctx, "typo", metav1.GetOptions{})
	_, reason, _ := strings.Cut(fmt.Sprint(err), " failed: ")
	fmt.Println(reason)
	_, err = v1beta1.Patch(ctx, "typo", types.MergePatchType, []byte(`{"spec":{"hostPort":"[::1]:80"}}`), metav1.PatchOptions{})
	if err != nil {
		panic(err)
	}
	u, err := v1.Get(ctx, "typo", metav1.GetOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println(u.Object["spec"])
	// Output:
	// request.objects[0]: cannot convert CronTab default/typo from stable.example.com/v1beta1 to stable.example.com/v1: spec.hostPort: Invalid value: "localhost:http": must be <host>:<port, an integer>
	// Warning: stable.example.com/v1beta1 CronTab is deprecated; use v1, which has host and port instead of hostPort
	// map[cronSpec:5 0 * * * host:[::1] image:report port:80 replicas:1 timeZone:Etc/UTC]
}
