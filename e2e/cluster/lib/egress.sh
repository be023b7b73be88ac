# shellcheck shell=bash
# Allows or blocks connections of pods to the outside of the cluster (egress).
#
# Off is the default, so that tests do not depend on the network of the machine. On
# allows the use of a real model: packets leave with the machine's address, and the
# machine's resolvers resolve names.

check_egress() {
  case $1 in
    off) ;;
    on) [ -n "$(resolvers)" ] || die "egress: no resolver that pods could reach in /etc/resolv.conf; name one: BLOOMERY_RESOLVERS=<address>" ;;
    *) die "egress is 'on' or 'off', not '$1'" ;;
  esac
}

# resolvers: prints the machine's name servers, at most three, as libc uses them. Pods
# cannot reach one at a loopback address; systemd-resolved lists the real ones in
# another file. The cluster has only IPv4.
resolvers() {
  local file found
  if [ -n "${BLOOMERY_RESOLVERS:-}" ]; then printf '%s' "$BLOOMERY_RESOLVERS"; return; fi
  for file in /etc/resolv.conf /run/systemd/resolve/resolv.conf; do
    found=$(awk '$1 == "nameserver" && $2 ~ /^[0-9.]+$/ && $2 !~ /^(127|0)\./ && n++ < 3 { print $2 }' "$file" 2>/dev/null | xargs)
    if [ -n "$found" ]; then printf '%s' "$found"; return; fi
  done
}

# choose_egress on|off: sets the variables of the templates.
# shellcheck disable=SC2034  # read by name in config.sh
choose_egress() {
  EGRESS=$1
  # CoreDNS asks no server while egress is off, but Kubernetes requires one in the pod spec.
  RESOLVERS=$NODE_IP
  if [ "$1" = on ]; then RESOLVERS=$(resolvers); RESOLVERS=${RESOLVERS// /, }; fi
}

load_egress_rules() { nft -f "$CONF/egress-$EGRESS.nft"; }

egress_now() { cat "$EGRESS_FILE" 2>/dev/null || echo off; }
record_egress() { echo "$EGRESS" >"$EGRESS_FILE"; }

# set_egress on|off: changes the running cluster without a restart. It applies all parts
# each time, which also repairs an interrupted change.
set_egress() {
  choose_egress "$1"
  render_config "$CLUSTER_DIR"/config/{egress-on.nft,egress-off.nft,coredns.yaml}
  # Until the change is complete, the recorded setting is the more open one.
  if [ "$1" = on ]; then record_egress; fi
  step "packets" load_egress_rules
  step "names" roll_out_dns
  record_egress
  if [ "$1" = on ]; then say "egress is on: pods can connect to everything that this machine can; name servers: $RESOLVERS"
  else say "egress is off: pods cannot connect to anything outside of the cluster"; fi
}

roll_out_dns() {
  apply_dns
  kc -n kube-system rollout status deployment/coredns --timeout 60s >/dev/null ||
    die "CoreDNS does not become ready (kubectl -n kube-system logs deployment/coredns)"
}
