# The targets that people and CI use. Their scripts are in hack/ and e2e/cluster/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
STEP := hack/step
CLUSTER := e2e/cluster/cluster

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  BLOOMERY_KUBECONFIG=<file> uses your cluster instead of the local one (docs/how-to/install.md)."

.PHONY: demo
demo: ## Start a local cluster, install the operator and run example Jobs
	@hack/demo

.PHONY: demo-cold
demo-cold: cluster-down ## Time the demo on a machine without caches: those of this machine are not used, and stay
	@hack/demo-cold

.PHONY: test
test: test-fast sdk-test gateway-test page-test e2e-core ## Run the tests that CI runs: those without a cluster, and the core stories

.PHONY: test-all
test-all: export BLOOMERY_EVERY_CASE := yes
test-all: test-fast sdk-test gateway-test page-test cluster-test e2e gateway-test-cluster ## Run all tests: every case, and every story; takes an hour

.PHONY: transcript
transcript: ## Record the transcript in docs/how-to/approve.md from the demo
	@BLOOMERY_TRANSCRIPT=$(CURDIR)/docs/how-to/approve.md hack/demo

.PHONY: test-fast
test-fast: ## Run the tests that need no cluster
	@$(STEP) "tests without a cluster" hack/test-fast

.PHONY: test-versions
test-versions: cluster-up images ## Run this version beside the version before, as processes and on the local cluster
	@$(STEP) "two versions side by side" hack/test-versions

.PHONY: sdk-test
sdk-test: ## Test the scripted model with the providers' own SDKs
	@$(STEP) "the providers' SDKs" hack/sdk-test

.PHONY: gateway-test
gateway-test: ## Test bloomery serve with OpenAI's SDKs, curl, a client of server-sent events and schemathesis
	@$(STEP) "clients of the gateway" hack/gateway-test

.PHONY: page-test
page-test: ## Test the page of the gateway in Chromium
	@$(STEP) "the page in Chromium" hack/page-test

.PHONY: cluster-test
cluster-test: cluster-up ## Check what the stories need of the local cluster: network, volumes, admission, egress
	@$(STEP) "the local cluster" e2e/cluster/selftest --egress

.PHONY: gateway-test-cluster
gateway-test-cluster: cluster-up images ## Run gateway-test and page-test with the gateway on the local cluster
	@$(STEP) "clients of the gateway on the cluster" hack/gateway-test --cluster
	@$(STEP) "the page in Chromium, on the cluster" hack/page-test --cluster

.PHONY: e2e
e2e: cluster-up images ## Run every story on the local cluster; FILTER=<name> selects some
	@$(STEP) "stories on the cluster" hack/e2e $(FILTER)

.PHONY: e2e-core
e2e-core: cluster-up images ## Run the stories of e2e/core-stories, which protect each promise once
	@$(STEP) "core stories on the cluster" hack/e2e --core

.PHONY: bench
bench: ## Measure the engine and the gateway against bare programs, and the report endpoint; ONLY=<section> selects a section
	@$(STEP) "bench" hack/bench $(ONLY)

.PHONY: bench-policy
bench-policy: ## Run honest and injected tasks with the policies of the templates; ONLY=<agent> selects an agent
	@$(STEP) "bench of policies" hack/bench-policy $(ONLY)

.PHONY: bench-cluster
bench-cluster: export BLOOMERY_PROFILE = release
# The default of Kubernetes: the rate of batch/v1 Jobs depends on it.
bench-cluster: export BLOOMERY_CONTROLLER_QPS = 20
bench-cluster: cluster-up images ## Run the long stories and measure waiting on the cluster; takes minutes
	@BLOOMERY_STORIES_AT_ONCE=1 $(STEP) "bench on the cluster" hack/e2e --ignored

.PHONY: lint
lint: lint-code lint-chart ## Check formatting, clippy, import cycles, licences, generated files, documentation, scripts, spelling, chart

.PHONY: lint-code
lint-code:
	@$(STEP) "rustfmt" cargo fmt --all --check
	@$(STEP) "shellcheck" hack/shellcheck
	@$(STEP) "typos" hack/typos
	@$(STEP) "cargo-deny" hack/deny
	@$(STEP) "the engine is pure" hack/check-pure
	@$(STEP) "no import cycles" hack/check-cycles
	@$(STEP) "clippy" cargo clippy --locked --workspace --all-targets -- -D warnings
	@$(STEP) "each library alone" hack/check-alone
	@$(STEP) "CRDs as committed" hack/crds --check
	@$(STEP) "reference as committed" hack/reference --check
	@$(STEP) "documentation" hack/check-docs

.PHONY: check-network
check-network: ## Let cyclonus evaluate the network policies of the golden files for every pair of pods and hosts
	@$(STEP) "network policies" hack/check-network

.PHONY: lint-chart
lint-chart:
	@$(STEP) "chart" hack/lint-chart

.PHONY: fuzz
fuzz: ## Fuzz each target for 60 s; hack/fuzz <target> <seconds> runs one
	@$(STEP) "fuzz" hack/fuzz

.PHONY: fmt
fmt: ## Format the Rust sources
	@cargo fmt --all

.PHONY: crds
crds: ## Generate crds/yaml and the chart's CRDs from the Rust types
	@hack/crds

.PHONY: reference
reference: ## Generate docs/reference from the CRDs, enums, help, metrics and chart values
	@hack/reference

.PHONY: images
images: ## Build the images that changed and load them into the cluster
	@$(STEP) "images" hack/images

.PHONY: cluster-up
cluster-up: ## Start a local Kubernetes node, unless it is up
	@$(STEP) "cluster" $(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster and remove it
	@$(CLUSTER) down

.PHONY: install
install: ## Install or upgrade the operator in the cluster
	@$(STEP) "install" hack/install

.PHONY: tutorial
tutorial: ## Prepare the servers and programs of docs/tutorial.md
	@$(STEP) "the tutorial's servers" hack/tutorial

.PHONY: kubeconfig
kubeconfig: ## Print the path of the kubeconfig (make -s kubeconfig)
	@$(CLUSTER) kubeconfig

.PHONY: kubectl
kubectl: ## Print the path of kubectl (make -s kubectl)
	@$(CLUSTER) kubectl

.PHONY: clean
clean: ## Delete the build results of this checkout, but not the caches outside of it
	@cargo clean
