# shellcheck shell=bash
# The implementation of the verbs.

kc() { "${KUBECTL:=$(bin kubectl)}" --kubeconfig "$ADMIN_KUBECONFIG" --cache-dir "$STATE/kubectl-cache" "$@"; }

# own_cluster: succeeds if the user named their own cluster.
own_cluster() { [ -n "${BLOOMERY_KUBECONFIG:-}" ]; }

# lock: lets only one changing verb run at a time. The daemons close the lock's file, so it
# is released when this shell ends.
lock() {
  exec 9>/run/lock/bloomery-cluster.lock
  flock -w 600 9 || die "another 'cluster up' or 'down' is running"
}

# check_owner: fails if another cluster runs. There can be only one per machine, because it
# uses a fixed bridge and fixed ports.
check_owner() {
  local other
  [ "$(id -u)" = 0 ] || die "must be run as root"
  # The path of a socket has at most 107 bytes, and a shim appends 71 to the directory.
  ((${#STATE} <= 36)) || die "BLOOMERY_STATE is too long (36 bytes at most): $STATE"
  case $STATE in /?*/?*) ;; *) die "BLOOMERY_STATE must be a directory below another one, used for nothing else: $STATE" ;; esac
  other=$(cat "$OWNER" 2>/dev/null || true)
  if [ -n "$other" ] && [ "$other" != "$STATE" ] && [ -n "$(our_processes)" ]; then
    die "a cluster is running with BLOOMERY_STATE=$other; remove it first: BLOOMERY_STATE=$other $CLUSTER_DIR/cluster down"
  fi
}

daemons_run() {
  local name
  for name in "${DAEMONS[@]}"; do running "$name" || return 1; done
}

healthy() { daemons_run && [ -x "$(bin kubectl)" ] && apiserver_ready && node_ready && dns_ready; }

# already_up: waits up to 60 s for the daemons to be healthy, so that a slow probe on a busy
# machine does not remove a cluster in use.
already_up() { healthy >/dev/null 2>&1 || { daemons_run && wait_for 60 "the running cluster to be healthy" healthy; }; }

verb_up() {
  if own_cluster; then check_own_cluster; return; fi
  check_owner
  check_egress "${EGRESS_WANTED:-off}"
  lock
  if already_up; then
    mark_binaries_used
    if [ -n "$EGRESS_WANTED" ]; then set_egress "$EGRESS_WANTED"; fi
    total "the cluster is already up (kubeconfig: $ADMIN_KUBECONFIG)"
    return
  fi
  step "packages" runtime_packages
  binaries "${NODE_SETS[@]}"
  helm_in_background
  # An incomplete cluster is removed and created again. That is as fast as a repair, and
  # works in every state.
  if anything_left; then say "  removing what is left of an earlier cluster"; take_down; fi
  delete_old_state_in_background
  build_up
  total "the cluster is up (kubeconfig: $ADMIN_KUBECONFIG)"
}

build_up() {
  mkdir -p "$STATE" && chmod 0711 "$STATE"
  echo "$STATE" >"$OWNER"
  choose_egress "${EGRESS_WANTED:-off}"
  step "certificates and configuration" make_files
  step "network and cgroup" make_network_and_cgroup
  step "etcd" start_etcd
  step "API server started" start_apiserver
  step "containerd and images" containerd_with_images
  step "API server ready" wait_apiserver
  step "controllers, kubelet, kube-proxy started" start_rest
  step "DNS and storage class" install_addons
  step "volumes" make_volumes
  step "node ready" wait_node
  step "CoreDNS ready" wait_dns
  record_egress
}
make_files() { make_config; make_pki; }
make_network_and_cgroup() { make_network; make_cgroup; make_run; }
containerd_with_images() { start_containerd; import_own_images; }
start_rest() { start_controllers; start_node; start_renewer; }

verb_down() {
  if own_cluster; then die "down: BLOOMERY_KUBECONFIG names your own cluster; only a local cluster can be removed"; fi
  check_owner
  lock
  if ! anything_left; then
    delete_old_state
    say "there is no cluster"
    return
  fi
  take_down
  step "old state deleted" delete_old_state
  total "the cluster is down"
}

# verb_egress [on|off]: without an argument, prints the setting.
verb_egress() {
  if own_cluster; then die "egress: not available for your own cluster (BLOOMERY_KUBECONFIG)"; fi
  if (($# == 0)); then egress_now; return; fi
  check_owner
  check_egress "$1"
  lock
  already_up || die "the cluster is not up: run '$CLUSTER_DIR/cluster up'"
  set_egress "$1"
}

# check_own_cluster: checks that the cluster answers, and creates nothing.
check_own_cluster() {
  local kubectl
  kubectl=$(bin kubectl)
  if [ ! -x "$kubectl" ]; then kubectl=$(type -P kubectl || "$CLUSTER_DIR/cluster" kubectl); fi
  "$kubectl" --kubeconfig "$BLOOMERY_KUBECONFIG" --request-timeout 10s get --raw /readyz >/dev/null ||
    die "the cluster of BLOOMERY_KUBECONFIG=$BLOOMERY_KUBECONFIG does not answer"
  say "using the cluster of BLOOMERY_KUBECONFIG=$BLOOMERY_KUBECONFIG; nothing is created"
}

verb_status() {
  local name
  if own_cluster; then check_own_cluster; return; fi
  for name in "${DAEMONS[@]}"; do
    if running "$name"; then printf '%-24s %s\n' "$name" "running, pid $(cut -d' ' -f1 "$PIDS/$name")"
    else printf '%-24s %s\n' "$name" "not running"; fi
  done
  if ! healthy >/dev/null 2>&1; then echo "the cluster is not up"; return 1; fi
  kc get nodes
  echo "egress is $(egress_now)"
  echo "the cluster is up (kubeconfig: $ADMIN_KUBECONFIG)"
}

verb_kubeconfig() { printf '%s\n' "${BLOOMERY_KUBECONFIG:-$ADMIN_KUBECONFIG}"; }

verb_load() {
  local archive
  if own_cluster; then die "load: not available for your own cluster; use its own command, such as 'kind load image-archive'"; fi
  (($#)) || die "load: name at least one archive"
  for archive in "$@"; do
    [ -r "$archive" ] || die "load: no such file: $archive"
    step "load $(basename "$archive")" import_image "$archive"
  done
}

# verb_images: asks the container runtime, because the node's status is updated later.
verb_images() {
  if own_cluster; then die "images: not available for your own cluster (BLOOMERY_KUBECONFIG)"; fi
  running containerd || die "the cluster is not up: run '$CLUSTER_DIR/cluster up'"
  ctr_images list --quiet
}

# verb_tag IMAGE NAME: names an image again. If another image has the name, this one gets it.
verb_tag() {
  if own_cluster; then die "tag: not available for your own cluster (BLOOMERY_KUBECONFIG)"; fi
  (($# == 2)) || die "tag: name an image of the node, and its further name"
  running containerd || die "the cluster is not up: run '$CLUSTER_DIR/cluster up'"
  ctr_images tag --force "$1" "$2" >/dev/null
  wait_for 20 "the container runtime to use the image as $2" is_managed "$2"
}
# containerd sets this label when the part of it that serves the kubelet has noticed the change.
is_managed() { ctr_images list --quiet "name==$1,labels.\"io.cri-containerd.image\"==managed" | grep -qxF "$1"; }
