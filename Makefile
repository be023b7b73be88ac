# The verbs that a person and CI use. What is behind them is in hack/ and e2e/cluster/.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
STEP := hack/step
CLUSTER := e2e/cluster/cluster

.PHONY: help
help: ## What there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  BLOOMERY_KUBECONFIG=<file> takes a cluster of yours instead of the local one (README.md)."

.PHONY: demo
demo: ## A cluster, the operator, Skills and Jobs: everything at once, on a machine that had nothing
	@hack/demo

.PHONY: test
test: test-fast sdk-test e2e ## All tests

.PHONY: transcript
transcript: ## Write the transcript in docs/how-to/approve.md, from what people do in the demo
	@BLOOMERY_TRANSCRIPT=$(CURDIR)/docs/how-to/approve.md hack/demo

.PHONY: test-fast
test-fast: ## Tests that need no cluster
	@$(STEP) "tests without a cluster" hack/test-fast

.PHONY: sdk-test
sdk-test: ## The providers' own SDKs talk to the scripted model
	@$(STEP) "the providers' SDKs" hack/sdk-test

.PHONY: e2e
e2e: cluster-up images ## Stories on a real cluster; FILTER=<name> picks some
	@$(STEP) "stories on the cluster" hack/e2e $(FILTER)

.PHONY: bench
bench: ## The engine's numbers, each to a floor of the same run; ONLY=<section> picks some
	@$(STEP) "bench" hack/bench $(ONLY)

.PHONY: bench-cluster
bench-cluster: cluster-up images ## What waiting costs on the cluster, and going on: each to its goal; some minutes
	@BLOOMERY_STORIES_AT_ONCE=1 $(STEP) "bench on the cluster" hack/e2e numbers:: --ignored

.PHONY: lint
lint: lint-code lint-chart ## Formatting, clippy, import cycles, licences, generated files, documentation, scripts, spelling, chart

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

.PHONY: lint-chart
lint-chart:
	@$(STEP) "chart" hack/lint-chart

.PHONY: fuzz
fuzz: ## Throw inputs at each fuzz target for 60 s; hack/fuzz <target> <seconds> picks one
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
cluster-up: ## A local Kubernetes node, whole; nothing happens where it is up
	@$(STEP) "cluster" $(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Take down all that cluster-up made
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
kubectl: ## Print the path of the client (make -s kubectl)
	@$(CLUSTER) kubectl

.PHONY: clean
clean: ## Delete what was built in this checkout; caches outside it stay
	@cargo clean
