# shellcheck shell=bash
# The objects that every cluster starts with: DNS and the storage class.

install_addons() {
  kc create -f "$CONF/storageclass.yaml" >/dev/null
  apply_dns
}

# Applied instead of created, because "egress" changes the objects of a running cluster.
apply_dns() { kc apply --server-side --force-conflicts --field-manager bloomery-cluster -f "$CONF/coredns.yaml" >/dev/null; }

dns_ready() {
  [ "$(kc --request-timeout 5s -n kube-system get deployment coredns -o 'jsonpath={.status.readyReplicas}')" = 1 ]
}

wait_dns() { wait_for 60 "CoreDNS (kubectl -n kube-system describe pods)" dns_ready; }
