# The targets that people use: demo and test. `make help` lists all.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# A go.work file of another project does not list these modules, and cd prints the folders that it finds by CDPATH.
export GOWORK = off
unexport CDPATH

# The modules that have packages: those under hack only name versions.
MODULES = $(sort $(patsubst %/,%,$(dir $(filter-out hack/%,$(shell git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod')))))
# The corpus compiles the types of other projects, which takes minutes: make corpus runs it.
TESTED = $(filter-out corpus,$(MODULES))
GENERATED = $(shell git ls-files --cached --others --exclude-standard -- '*zz_generated*' '*/config/crd/*.yaml')

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The processes of a demo are short, so the garbage collector costs more than it saves.
DEMO = GOGC=400 bin/pizza-demo --operator bin/pizza-operator $(if $(KEEP),--keep)
EMBEDDED_DEMO = kubectl=$$(hack/controlplane/kubectl.sh) && $(DEMO) --kubectl "$$kubectl"

# Without inlining, compiling takes a quarter less time, and the demo a little more. If there is a control
# plane, most packages are compiled already, with inlining.
.PHONY: demo
demo: export GOFLAGS += $(if $(wildcard $(CONTROLPLANE)/bin/.built),,-gcflags=all=-l)
demo: demo-binaries ## Show the pizza operator on the API server's own code, without etcd. KEEP=1 leaves it running.
	@$(EMBEDDED_DEMO)

.PHONY: demo-cluster
demo-cluster: controlplane demo-binaries ## Show the same on a real control plane. KEEP=1 leaves it running.
	@$(DEMO)

.PHONY: demo-binaries
demo-binaries:
	@hack/go-build.sh bin "-s -w" ./examples/pizza/cmd/pizza-demo ./examples/pizza/cmd/pizza-operator

.PHONY: demo-apiserver
demo-apiserver: controlplane ## Show the restaurant as an aggregated API server, with its own etcd. KEEP=1 leaves it running.
	@cd examples/pizza-apiserver && ../../hack/go-build.sh ../../bin "-s -w" ./cmd/...
	@bin/pizza-apiserver-demo --server bin/pizza-apiserver $(if $(KEEP),--keep)

# $(call each-module,command) runs `go command ./...` in each module.
each-module = $(foreach module,$(MODULES),go -C $(module) $(1) ./...$(newline)	)

define newline


endef

# End-to-end tests wait most of the time, so more of them run at once than there are cores, and
# the nested modules beside the main one.
TESTFLAGS = -p 3 -timeout 40m

.PHONY: test
test: export CRDKIT_REQUIRE_CONTROLPLANE = 1
test: controlplane ## Run the tests of every module, end to end too. `make verify` also checks the rest.
	@$(MAKE) --no-print-directory --jobs=2 --keep-going $(TESTED:%=go-test/%)

# Ginkgo refuses -parallel.
GINKGO = github.com/crdkit/crdkit/interop/controllerruntime/moving/step0

# The tests of one module.
go-test/%:
	go -C $* test -vet=off $(TESTFLAGS) -parallel 8 $$(go -C $* list ./... | grep -vx $(GINKGO))
	$(if $(filter interop/%,$*),go -C $* test -vet=off $(TESTFLAGS) $(GINKGO))

.PHONY: verify
verify: lint generate-check ## Run everything: static checks, all tests and their long forms, the race detector, demos and comparisons.
	@CRDKIT_VERIFY=1 $(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test TESTFLAGS="$(TESTFLAGS) -race -skip $(WITHOUT_RACE)"
	@$(MAKE) --no-print-directory demo demo-cluster
	@$(MAKE) --no-print-directory corpus
	@$(MAKE) --no-print-directory differential N=5000
	@$(MAKE) --no-print-directory fuzz T=2s
	@$(MAKE) --no-print-directory release-check

# These take long with the race detector, under which other tests run the same code.
WITHOUT_RACE = '^TestCatalogue_EachBug|^TestMachine_RightConversion|^TestEdited_CorrectConversion|^TestCompare_FindsMistakes|^TestCompare_AcceptsEquals|^TestLaws_NoBug|^TestCauses_OneReportEach|^TestLossless_RefusesBombs|^TestDecoder_GivesWhatRegistryGives'

# It takes 6 minutes on two cores, and several more the first time.
.PHONY: corpus
corpus: export CRDKIT_REQUIRE_CONTROLPLANE = 1
corpus: export GOGC = 400
corpus: controlplane ## Test the conversions of public projects, and confirm the findings on a real control plane.
	@go -C corpus test -vet=off -count=1 -timeout 60m | sed '/^ok /d'

# It takes 4 minutes on two cores, and several more the first time.
.PHONY: suites
suites: ## Run the tests of two public operators on schema/apiservertest, in place of envtest.
	@CRDKIT_SUITES=1 go -C corpus test -vet=off -count=1 -timeout 60m -run '^TestSuites$$' | sed '/^ok /d'

.PHONY: bench
bench: controlplane ## Measure crdkit beside its peers: one line a figure, `ratio <name> <value>`.
	@go -C bench run .

.PHONY: recording
recording: demo-binaries ## Run the demo and record it for the README: docs/demo.svg.
	@svg=$$($(EMBEDDED_DEMO) | go run ./test/recording) && echo "$$svg" >docs/demo.svg

T ?= 60s

.PHONY: fuzz
fuzz: ## Run each fuzz target for T, 60s by default: make fuzz T=10s.
	@hack/fuzz.sh $(T)

.PHONY: soak
soak: controlplane ## Run two replicas for T under fault injection, and count failed requests: make soak T=10m.
	@go build -o bin/ ./examples/pizza/cmd/...
	@bin/pizza-soak --operator bin/pizza-operator -t $(T)

.PHONY: differential
differential: N ?= 20000
differential: controlplane ## Compare schema, schema/apiservertest and scheme/resource with a real kube-apiserver: N=20000 requests, SEED=… again.
	@go build -o bin/ ./test/differential/cmd/differential ./test/sequence/cmd/sequence
	@bin/differential -n $(N) $(if $(SEED),-seed $(SEED))
	@bin/sequence -n $(N) $(if $(SEED),-seed $(SEED))

.PHONY: migrate
migrate: N ?= 50000
migrate: controlplane ## Move N=50000 stored objects to a new version, killed halfway: rate, memory, and what has changed.
	@CRDKIT_MIGRATE_OBJECTS=$(N) CRDKIT_REQUIRE_CONTROLPLANE=1 go -C examples/crdmigrate test -count=1 -timeout 2h -run '^TestRun_Killed$$'

# The releases of Kubernetes that have a module: the one that everything runs with, and
# those of folders of their own, each with the etcd that it names.
RELEASE = $(shell sed -n 's|.*k8s.io/kubernetes v\(1\.[0-9]*\)\..*|\1|p' $(CONTROLPLANE)/go.mod)
OTHERS = $(patsubst $(CONTROLPLANE)/%/go.mod,%,$(wildcard $(CONTROLPLANE)/*/go.mod))
VERSIONS ?= $(sort $(OTHERS) $(RELEASE))
RELEASES = $(foreach v,$(VERSIONS),$(if $(filter $v,$(RELEASE)),$(CONTROLPLANE),$(if $(filter $v,$(OTHERS)),$(CONTROLPLANE)/$v,$(error there is no module of Kubernetes $v: there are $(sort $(OTHERS) $(RELEASE))))))

.PHONY: test-matrix
test-matrix: export CRDKIT_VERIFY = 1
test-matrix: N ?= 20000
test-matrix: ## Run what needs a control plane, and differential, against each Kubernetes: VERSIONS="1.33 1.34".
	@$(MAKE) --no-print-directory $(addsuffix /bin/.built,$(RELEASES))
	@go build -o bin/ ./test/differential/cmd/differential ./test/matrix/cmd/matrix
	@bin/matrix -n $(N) $(if $(SEED),-seed $(SEED)) -modules "$(TESTED)" $(RELEASES)

.PHONY: release-check
release-check: VERSION ?= v0.1.0
release-check: ## Check that the last commit can be tagged: the modules work for an importer. VERSION=v0.1.0
	@hack/release-check.sh $(VERSION)

.PHONY: lint
lint: ## Check formatting, go vet, staticcheck, go.mod and the prose.
	@unformatted=$$(git ls-files --cached --others --exclude-standard -- '*.go' | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "not formatted:" $$unformatted; exit 1; }
	go mod tidy -diff
	$(call each-module,vet)
	$(call each-module,tool -modfile=$(CURDIR)/hack/tools/go.mod staticcheck)
	$(VALE) $(PROSE)

# Vale reports errors by default: words that are plainly wrong.
VALE = go tool -modfile=hack/vale/go.mod vale --no-global --config=hack/vale/vale.ini
PROSE = $$(git ls-files --cached --others --exclude-standard -- '*.md' '*.go')

.PHONY: advice
advice: ## Show the advice about the prose that does not fail `make lint`.
	@$(VALE) --minAlertLevel=suggestion $(PROSE)

.PHONY: generate
generate: ## Generate deep copies and CustomResourceDefinitions.
	$(call each-module,generate)

.PHONY: generate-check
generate-check: ## Fail if what is generated is not up to date.
	@before=$$(cat $(GENERATED) | cksum); \
	$(MAKE) --no-print-directory generate; \
	[ "$$before" = "$$(cat $(GENERATED) | cksum)" ] || { echo "generated files were stale: commit what 'make generate' made of them"; exit 1; }

# The control plane is built once, and again when its module changes.
CONTROLPLANE = hack/controlplane

.PHONY: controlplane
ifdef KUBEBUILDER_ASSETS
controlplane: ## Build etcd, kube-apiserver and kubectl, unless KUBEBUILDER_ASSETS names them.
	@echo "Using etcd, kube-apiserver and kubectl of $(KUBEBUILDER_ASSETS)"
else
controlplane: $(CONTROLPLANE)/bin/.built
endif

$(CONTROLPLANE)/bin/.built: $(CONTROLPLANE)/go.mod $(CONTROLPLANE)/go.sum $(CONTROLPLANE)/build.sh
	@$(CONTROLPLANE)/build.sh
	@touch $@

$(CONTROLPLANE)/%/bin/.built: $(CONTROLPLANE)/%/go.mod $(CONTROLPLANE)/%/go.sum $(CONTROLPLANE)/build.sh
	@$(CONTROLPLANE)/build.sh $*
	@touch $@
