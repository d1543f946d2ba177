package crdkit_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
)

// TestPackages_StaySmall checks what an importer of one package pays for.
func TestPackages_StaySmall(t *testing.T) {
	const (
		clientGo   = "k8s.io/client-go"
		apiServer  = "k8s.io/apiserver"
		extensions = "k8s.io/apiextensions-apiserver"
		prometheus = "github.com/prometheus/client_golang"
		cel        = "github.com/google/cel-go"
		this       = "github.com/crdkit/crdkit"
		etcd       = "go.etcd.io"
	)
	// These bring in a cluster.
	cluster := []string{etcd, clientGo + "/informers", clientGo + "/kubernetes", clientGo + "/dynamic", clientGo + "/tools/cache", apiServer + "/pkg/registry/generic", extensions + "/pkg/client"}
	offline := slices.Concat(cluster, []string{this + "/conversion", this + "/admission", this + "/webhook", this + "/examples"})
	// Packages with a cluster, which must be small too.
	serving := []string{apiServer, prometheus, cel, etcd, clientGo + "/kubernetes", clientGo + "/informers", clientGo + "/dynamic/dynamicinformer", this + "/conversion", this + "/admission", this + "/examples"}
	for pkg, forbidden := range map[string][]string{
		"scheme":              {clientGo, apiServer, extensions, prometheus, cel, this + "/"},
		"scheme/resource":     {extensions + "/pkg/client", this + "/conversion", this + "/admission", this + "/webhook", this + "/examples"},
		"conversion/metrics":  {clientGo, apiServer, cel, this + "/admission", this + "/webhook", this + "/examples"},
		"conversion":          {clientGo, apiServer, extensions, prometheus, cel, this + "/admission", this + "/webhook", this + "/examples"},
		"conversion/lossless": {clientGo, apiServer, extensions, prometheus, cel, "sigs.k8s.io/controller-runtime", this + "/conversion", this + "/admission", this + "/webhook", this + "/examples"},
		"conversion/migrate": {apiServer, prometheus, cel, etcd, clientGo + "/kubernetes", clientGo + "/informers", clientGo + "/tools/cache", extensions + "/pkg/client",
			this + "/conversion/metrics", this + "/admission", this + "/webhook", this + "/schema", this + "/examples"},
		"conversion/migrate/metrics": {apiServer, cel, etcd, clientGo + "/kubernetes", clientGo + "/informers", this + "/admission", this + "/webhook", this + "/examples"},
		"admission":                  {clientGo, apiServer, extensions, prometheus, cel, this + "/conversion", this + "/webhook", this + "/examples"},
		"admission/metrics":          {clientGo, apiServer, extensions, cel, this + "/conversion", this + "/webhook", this + "/examples"},
		"admission/plugin":           {clientGo + "/tools/cache", extensions, this + "/conversion", this + "/webhook", this + "/examples"},
		"admission/reference":        {apiServer, extensions, prometheus, cel, this + "/conversion", this + "/webhook", this + "/examples"},
		"schema":                     offline,
		"schema/apiservertest":       {this + "/conversion", this + "/admission", this + "/webhook", this + "/examples", "k8s.io/kubernetes"},
		"schema/breaking":            offline,
		"schema/rehearse":            offline,
		"schema/equivalence":         {this + "/conversion", this + "/admission", this + "/webhook", this + "/examples", "k8s.io/kubernetes"},
		"roundtrip":                  slices.Concat(cluster, []string{this + "/admission", this + "/webhook", this + "/examples"}),
		"webhook":                    {clientGo + "/rest", clientGo + "/kubernetes", apiServer, extensions, prometheus, cel, this + "/examples"},
		"webhook/authority":          slices.Concat(serving, []string{extensions, this + "/webhook/registration"}),
		"webhook/replica":            serving,
		"webhook/metrics":            {clientGo + "/rest", clientGo + "/kubernetes", apiServer, extensions, cel, this + "/examples"},
		"webhook/registration": {apiServer, extensions, prometheus, cel, etcd, clientGo + "/kubernetes", clientGo + "/informers", clientGo + "/dynamic/dynamicinformer",
			clientGo + "/applyconfigurations", this + "/conversion", this + "/admission", this + "/schema", this + "/examples"},
		"cmd/crdcheck": slices.Concat(offline, []string{this + "/test"}),
	} {
		t.Run(pkg, func(t *testing.T) {
			output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+pkg).Output()
			expect.NoError(t, err)
			self := this + "/" + pkg
			for dep := range strings.Lines(string(output)) {
				dep = strings.TrimSpace(dep)
				if dep == self || strings.HasPrefix(dep, self+"/internal/") || strings.HasPrefix(dep, this+"/internal/") {
					continue
				}
				for _, f := range forbidden {
					if strings.HasPrefix(dep, f) {
						t.Errorf("%s imports %s", pkg, dep)
					}
				}
			}
		})
	}
}

// TestImports_RunDownward checks that what ships needs nothing that is for tests, and that
// shared code does not import the packages that share it.
func TestImports_RunDownward(t *testing.T) {
	const this = "github.com/crdkit/crdkit/"
	output, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./...").Output()
	expect.NoError(t, err)
	for line := range strings.Lines(string(output)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		to, ours := strings.CutPrefix(to, this)
		if !ours {
			continue
		}
		from = strings.TrimPrefix(from, this)
		fromTest := strings.HasPrefix(from, "test/")
		switch {
		case strings.HasPrefix(to, "test/") && !fromTest && !strings.HasPrefix(from, "examples/"):
			t.Errorf("%s ships, and imports %s", from, to)
		case strings.HasPrefix(from, "internal/") && !strings.HasPrefix(to, "internal/"):
			t.Errorf("%s is shared, and imports %s", from, to)
		}
	}
}
