# shellcheck shell=bash
# The demo's cluster on a machine with Docker and kind. Sourced by hack/demo, after hack/lib.sh.
# shellcheck disable=SC2154  # $cluster and $cache are set by hack/lib.sh

kind_name=bloomery
# The first version whose nodes have Kubernetes 1.33, which the operator needs.
kind_least=0.29.0

# prefers_kind: succeeds if nobody named a cluster, the local one is not up, and Docker and a suitable kind are here.
prefers_kind() {
  [[ -z ${BLOOMERY_KUBECONFIG:-} ]] && new_enough "$(kind version 2>/dev/null)" &&
    timeout 5 docker info >/dev/null 2>&1 && ! "$cluster" status >/dev/null 2>&1
}

# new_enough TEXT: whether the output of `kind version` names at least $kind_least.
new_enough() {
  [[ $1 =~ v([0-9]+\.[0-9]+\.[0-9]+) ]] && printf '%s\n' "$kind_least" "${BASH_REMATCH[1]}" | sort --version-sort --check=quiet
}

# choose_kind: sets the variables of a user's own cluster (README.md) to the one of kind.
choose_kind() {
  export BLOOMERY_KUBECONFIG=$cache/kind/kubeconfig BLOOMERY_LOAD="kind load image-archive --name $kind_name"
  unset BLOOMERY_REGISTRY
  say "Docker and kind are installed: the demo uses the kind cluster '$kind_name'"
}

# start_kind: creates the cluster unless it exists. The user's kubeconfig is not changed. The node has a kubectl of its version.
start_kind() {
  mkdir -p "$cache/kind"
  kind get clusters 2>/dev/null | grep -xF "$kind_name" >/dev/null ||
    logged "$cache/log/kind.log" "create the cluster (kind)" \
      kind create cluster --name "$kind_name" --kubeconfig "$BLOOMERY_KUBECONFIG" --wait 120s ||
    die "kind could not create the cluster '$kind_name'; 'make cluster-up demo' uses the local cluster instead"
  logged "$cache/log/kind-kubeconfig.log" "kubeconfig (kind)" \
    kind export kubeconfig --name "$kind_name" --kubeconfig "$BLOOMERY_KUBECONFIG"
  command -v kubectl >/dev/null || {
    docker cp --quiet "$kind_name-control-plane:/usr/bin/kubectl" "$cache/kind/kubectl"
    PATH=$PATH:$cache/kind
  }
}
