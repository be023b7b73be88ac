# shellcheck shell=bash
# Whether pods reach anything outside of the cluster. Off is the default: tests
# must not depend on what a machine happens to reach. On is for a person who
# wants a real model: packets leave with the machine's address, and names are
# resolved by the machine's resolvers.

check_egress() {
  case $1 in
    off) ;;
    on) [ -n "$(resolvers)" ] || die "egress: no resolver that pods could reach in /etc/resolv.conf; name one: BLOOMERY_RESOLVERS=<address>" ;;
    *) die "egress is 'on' or 'off', not '$1'" ;;
  esac
}

# resolvers: the machine's, three at most, as libc has it. One on a loopback
# address is the machine's alone; systemd-resolved keeps those behind its own in
# another file. The cluster has IPv4 only.
resolvers() {
  local file found
  if [ -n "${BLOOMERY_RESOLVERS:-}" ]; then printf '%s' "$BLOOMERY_RESOLVERS"; return; fi
  for file in /etc/resolv.conf /run/systemd/resolve/resolv.conf; do
    found=$(awk '$1 == "nameserver" && $2 ~ /^[0-9.]+$/ && $2 !~ /^(127|0)\./ && n++ < 3 { print $2 }' "$file" 2>/dev/null | xargs)
    if [ -n "$found" ]; then printf '%s' "$found"; return; fi
  done
}

# choose_egress on|off: what the templates are rendered with.
# shellcheck disable=SC2034  # read by name in config.sh
choose_egress() {
  EGRESS=$1
  # CoreDNS asks nobody while egress is off; Kubernetes wants a name server all the same.
  RESOLVERS=$NODE_IP
  if [ "$1" = on ]; then RESOLVERS=$(resolvers); RESOLVERS=${RESOLVERS// /, }; fi
}

load_egress_rules() { nft -f "$CONF/egress-$EGRESS.nft"; }

egress_now() { cat "$EGRESS_FILE" 2>/dev/null || echo off; }
record_egress() { echo "$EGRESS" >"$EGRESS_FILE"; }

# set_egress on|off: in the running cluster, which goes on meanwhile. Whole each
# time, so that it also mends what was left half done.
set_egress() {
  choose_egress "$1"
  render_config "$CLUSTER_DIR"/config/{egress-on.nft,egress-off.nft,coredns.yaml}
  # Recorded as the more open of the two until all is done.
  if [ "$1" = on ]; then record_egress; fi
  step "packets" load_egress_rules
  step "names" roll_out_dns
  record_egress
  if [ "$1" = on ]; then say "egress is on: pods reach what this machine reaches, names by $RESOLVERS"
  else say "egress is off: pods reach nothing outside of the cluster"; fi
}

roll_out_dns() {
  apply_dns
  kc -n kube-system rollout status deployment/coredns --timeout 60s >/dev/null ||
    die "CoreDNS does not become ready (kubectl -n kube-system logs deployment/coredns)"
}
