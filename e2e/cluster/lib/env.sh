# shellcheck shell=bash
# Names, paths and addresses. Every other file reads them; none is computed twice.
# shellcheck disable=SC2034  # used by the files that source this one

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STATE=${BLOOMERY_STATE:-/var/lib/bloomery-cluster}
CACHE=${BLOOMERY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/bloomery}/cluster-bin

LOGS=$STATE/log
PKI=$STATE/pki
CONF=$STATE/conf
PIDS=$STATE/pids
VOLUMES=$STATE/volumes
ADMIN_KUBECONFIG=$STATE/admin.kubeconfig
AUDIT_LOG=$LOGS/audit.log
CONTAINERD_SOCK=$STATE/run/containerd.sock

# The bridge is made by us, with the node's address on it: the node then has the
# same address on every machine, and nothing listens towards the outside.
BRIDGE=bloomery0
NODE_NAME=bloomery-node
NODE_IP=10.244.0.1
POD_CIDR=10.244.0.0/16
SERVICE_CIDR=10.96.0.0/16
API_SERVICE_IP=10.96.0.1
DNS_SERVICE_IP=10.96.0.10
API_PORT=6443
API_URL=https://$NODE_IP:$API_PORT
ETCD_URL=http://127.0.0.1:2379

# All processes, daemons and containers alike, live below this cgroup, so what
# is left of a killed cluster can be found without guessing by name.
CGROUP=bloomery-cluster

CNI_PLUGINS=/usr/lib/cni
PAUSE_IMAGE=bloomery.local/pause:1
COREDNS_IMAGE=bloomery.local/coredns:1

# What the running cluster has, "on" or "off"; and what an "up" is to give it, if
# it is to have anything else than it has.
EGRESS_FILE=$STATE/egress
EGRESS_WANTED=${BLOOMERY_EGRESS:-}

# Names the state directory of the cluster that has the machine's bridge.
OWNER=/run/bloomery-cluster.owner
