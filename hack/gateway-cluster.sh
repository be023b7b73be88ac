# shellcheck shell=bash
# The gateway on the cluster in use, with namespaces for the tests of its clients. Sourced after hack/lib.sh.
# shellcheck disable=SC2154  # $root, $cache, $config, $kubectl and $forwarding are set by hack/lib.sh

# The hosts that the tests connect to directly.
# shellcheck disable=SC2034  # for the scripts that source this file
unproxied=127.0.0.1

# start_gateway NAMESPACE: installs the operator with the gateway, whose requests use NAMESPACE unless they name another one, and sets
# $GATEWAY_URL. Service accounts may decide on Approvals, because each cluster has tokens for them. When the script ends, the operator is
# installed without the gateway.
start_gateway() {
  local log=$cache/log/gateway.log deadline
  use_cluster
  need curl curl
  trap stop_gateway EXIT
  "$root/hack/install" --set gateway.enabled=true --set "gateway.namespace=$1" --set approvals.refuseServiceAccounts=false
  if [[ -z ${BLOOMERY_KUBECONFIG:-} ]]; then
    # This machine is the node of the local cluster. A forwarded port may end when a client closes its connection.
    gateway_url=http://$(on_cluster --namespace bloomery-system get service bloomery-gateway -o jsonpath='{.spec.clusterIP}')
  else
    mkdir -p "$cache/log"
    forward_gateway "$log" || die "the gateway cannot be reached: $(tail -3 "$log")"
  fi
  # The node takes some time to know the Service.
  deadline=$((SECONDS + 60))
  until curl --noproxy '*' --fail --silent --max-time 5 --output /dev/null "$gateway_url/openapi.json"; do
    ((SECONDS < deadline)) || die "the gateway does not answer at $gateway_url"
    sleep 0.2
  done
  export GATEWAY_URL=$gateway_url
  unproxied=127.0.0.1,${gateway_url#http://}
}

stop_gateway() {
  local code=$? namespace
  trap - EXIT
  [[ -z ${forwarding:-} ]] || kill "$forwarding" 2>/dev/null || true
  if ((code != 0)); then
    say "--- state of ${tenants[*]}:"
    for namespace in "${tenants[@]}"; do on_cluster --namespace "$namespace" get skills,sj,models,pods >&2 || true; done
  elif ((${#tenants[@]})); then
    on_cluster delete namespace "${tenants[@]}" --wait=false || code=$?
  fi
  "$root/hack/install" >/dev/null || code=$?
  exit "$code"
}

# The namespaces that make_tenant has created.
tenants=()

# make_tenant NAMESPACE SCRIPT: deletes and creates a namespace, and starts the scripted model of the demo in it with the file SCRIPT.
make_tenant() {
  local namespace=$1 script=$2 text
  on_cluster delete namespace "$namespace" --ignore-not-found --timeout 180s
  tenants+=("$namespace")
  on_cluster create namespace "$namespace"
  on_cluster label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted
  on_cluster --namespace "$namespace" create configmap scripted-model --from-file "script.yaml=$script"
  text=$(awk 'BEGIN { RS = ORS = "---\n" } !/(^|\n)kind: ConfigMap\n/' "$root/e2e/demo/scripted-model.yaml")
  apply_in "$namespace" - <<<"${text//bloomery-demo/$namespace}"
  on_cluster --namespace "$namespace" rollout status deployment scripted-model --timeout 120s
}

# apply_in NAMESPACE FILE...: applies manifests. ${E2E_MODEL_IMAGE} and ${E2E_SHELL_IMAGE} in them are replaced by these images.
apply_in() {
  local namespace=$1 file text name variable
  for file in "${@:2}"; do
    text=$(cat "$file")
    for name in e2e-model e2e-shell; do
      variable=${name^^}
      text=${text//"\${${variable//-/_}_IMAGE}"/$(jq -er --arg name "$name" '.[$name]' "${CARGO_TARGET_DIR:-$root/target}/images.json")}
    done
    on_cluster --namespace "$namespace" apply --server-side --field-manager bloomery-tests -f - <<<"$text"
  done
}

# token NAMESPACE NAME CLUSTER-ROLE...: creates a service account with these roles in the namespace, and prints a token.
token() {
  local namespace=$1 name=$2 role
  on_cluster --namespace "$namespace" create serviceaccount "$name" >&2
  for role in "${@:3}"; do
    on_cluster --namespace "$namespace" create rolebinding "$name-$role" --clusterrole "$role" --serviceaccount "$namespace:$name" >&2
  done
  on_cluster --namespace "$namespace" create token "$name" --duration 2h
}

# until_ready NAMESPACE SKILL...: waits until Skills are ready.
until_ready() {
  on_cluster --namespace "$1" wait skills "${@:2}" --for condition=Ready --timeout 180s
}
