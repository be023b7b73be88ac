# shellcheck shell=bash
# Fills the @NAMES@ of the templates in config/ in.

make_config() {
  local file
  mkdir -p "$CONF/cni" "$LOGS" "$STATE/run" "$VOLUMES"
  for file in "$CLUSTER_DIR"/config/*; do
    render "$file" >"$CONF/$(basename "$file")"
  done
  mv "$CONF/cni.conflist" "$CONF/cni/10-bloomery.conflist"
}

render() {
  local name script='' RUNC
  # shellcheck disable=SC2034  # read by name below
  RUNC=$(bin runc)
  for name in STATE CONF LOGS PKI CONTAINERD_SOCK CNI_PLUGINS BRIDGE CGROUP RUNC NODE_NAME \
    NODE_IP POD_CIDR DNS_SERVICE_IP PAUSE_IMAGE COREDNS_IMAGE; do
    script+="s|@$name@|${!name}|g;"
  done
  sed "$script" "$1"
}
