# shellcheck shell=bash
# Names, paths and addresses for all other files.
# shellcheck disable=SC2034  # used by the files that source this one

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
STATE=${BLOOMERY_STATE:-/var/lib/bloomery-cluster}
CACHE=${BLOOMERY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/bloomery}/cluster-bin
# The output of package managers and compilers.
BUILD_LOGS=${CACHE%/cluster-bin}/log

LOGS=$STATE/log
PKI=$STATE/pki
CONF=$STATE/conf
PIDS=$STATE/pids
VOLUMES=$STATE/volumes
ADMIN_KUBECONFIG=$STATE/admin.kubeconfig
AUDIT_LOG=$LOGS/audit.log
CONTAINERD_SOCK=$STATE/run/containerd.sock

# The node's address is on a bridge of the cluster. So the address is the same on every
# machine, and nothing listens on external interfaces.
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

# All daemons and containers run in this cgroup. So the processes of a killed cluster can
# be found without searching for names.
CGROUP=bloomery-cluster

CNI_PLUGINS=/usr/lib/cni
PAUSE_IMAGE=bloomery.local/pause:1
COREDNS_IMAGE=bloomery.local/coredns:1

# The setting of the running cluster, "on" or "off", and the setting that "up" applies.
# If the latter is empty, "up" keeps the setting of a running cluster.
EGRESS_FILE=$STATE/egress
EGRESS_WANTED=${BLOOMERY_EGRESS:-}

# The requests in a second that kube-controller-manager may send.
CONTROLLER_QPS=${BLOOMERY_CONTROLLER_QPS:-100}

# Contains the state directory of the cluster that uses the machine's bridge.
OWNER=/run/bloomery-cluster.owner
