// Command pizza-apiserver-demo shows the pizza restaurant as an aggregated API server: each
// command, what it prints, and whether that is what it should. `make demo-apiserver` runs it.
package main

import (
	"flag"
	"os"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza-apiserver/internal/walkthrough"
	"github.com/crdkit/crdkit/test/controlplane"
)

func main() {
	server := flag.String("server", "", "The `path` of the pizza-apiserver binary.")
	keep := flag.Bool("keep", false, "Leave everything running at the end, until interrupted.")
	flag.Parse()
	show.Demo(*keep, show.ControlPlane(controlplane.Aggregation()), func(cluster show.Cluster) (show.Walkthrough, error) {
		return walkthrough.Open(cluster, *server, os.Stdout)
	})
}
