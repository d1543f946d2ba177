// Command pizza-demo shows the pizza operator on an API server: each command, what it prints, and
// whether that is what it should. `make demo` and `make demo-cluster` run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza/internal/walkthrough"
)

func main() {
	operator := flag.String("operator", "", "The `path` of the pizza-operator binary.")
	kubectl := flag.String("kubectl", "", "The `path` of a kubectl binary, to run on an API server in this process. Without it, etcd and kube-apiserver are started.")
	keep := flag.Bool("keep", false, "Leave everything running at the end, until interrupted.")
	flag.Parse()
	start := show.ControlPlane()
	if *kubectl != "" {
		start = func(context.Context) (show.Cluster, error) { return embedded(*kubectl) }
	}
	show.Demo(*keep, start, func(cluster show.Cluster) (show.Walkthrough, error) {
		return walkthrough.Open(cluster, *operator, os.Stdout)
	})
}

// embedded starts an API server in this process, which logs nothing.
func embedded(kubectl string) (show.Cluster, error) {
	fmt.Println("This runs on the API server's own code for custom resources, without etcd and kube-apiserver; " +
		"make demo-cluster uses a real control plane.")
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	return walkthrough.StartEmbedded(kubectl)
}
