# shellcheck shell=bash
# Replaces the @NAMES@ in the templates of config/.

make_config() {
  mkdir -p "$CONF/cni" "$LOGS" "$STATE/run" "$VOLUMES"
  render_config "$CLUSTER_DIR"/config/*
  mv "$CONF/cni.conflist" "$CONF/cni/10-bloomery.conflist"
}

# render_config TEMPLATE...: writes the rendered templates to $CONF.
render_config() {
  local file
  for file in "$@"; do render "$file" >"$CONF/$(basename "$file")"; done
}

render() {
  local name script='' RUNC
  # shellcheck disable=SC2034  # read by name below
  RUNC=$(bin runc)
  for name in STATE CONF LOGS PKI CONTAINERD_SOCK CNI_PLUGINS BRIDGE CGROUP RUNC NODE_NAME \
    NODE_IP POD_CIDR DNS_SERVICE_IP PAUSE_IMAGE COREDNS_IMAGE EGRESS RESOLVERS; do
    script+="s|@$name@|${!name}|g;"
  done
  sed "$script" "$1"
}
