# shellcheck shell=bash
# The node: its network, containerd, the kubelet and kube-proxy.

make_network() {
  cat /proc/sys/net/ipv4/ip_forward >"$STATE/ip_forward.before"
  echo 1 >/proc/sys/net/ipv4/ip_forward
  # Packets between two pods must also pass the rules of Services.
  if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then
    echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
  fi
  ip link add "$BRIDGE" type bridge
  ip addr add "$NODE_IP/${POD_CIDR#*/}" dev "$BRIDGE"
  ip link set "$BRIDGE" up
  # The node itself, and tests on it, can then connect to Services.
  ip route add "$SERVICE_CIDR" dev "$BRIDGE" src "$NODE_IP"
  load_egress_rules
}

make_cgroup() {
  local root
  if [ ! -d /sys/fs/cgroup/pids ]; then mkdir -p "/sys/fs/cgroup/$CGROUP"; return; fi
  # cgroup v1: the kubelet needs its root in every hierarchy.
  for root in /sys/fs/cgroup/*/; do
    if [ -e "$root/cgroup.procs" ]; then mkdir -p "$root/$CGROUP"; fi
  done
  if [ -d "/sys/fs/cgroup/cpuset/$CGROUP" ]; then
    cat /sys/fs/cgroup/cpuset/cpuset.cpus >"/sys/fs/cgroup/cpuset/$CGROUP/cpuset.cpus"
    cat /sys/fs/cgroup/cpuset/cpuset.mems >"/sys/fs/cgroup/cpuset/$CGROUP/cpuset.mems"
  fi
}

# Sockets and the state of running containers are in memory, as in /run of other systems.
make_run() { mount -t tmpfs -o mode=0711,size=1g bloomery-run "$STATE/run"; }

start_containerd() { daemon containerd "$(bin containerd)" --config "$CONF/containerd.toml"; }

# ctr_images ARGUMENT...: runs a command of ctr for the images of the node.
ctr_images() { "$(bin ctr)" --address "$CONTAINERD_SOCK" --namespace k8s.io images "$@"; }

containerd_ready() { ctr_images list --quiet; }

import_own_images() {
  wait_for 20 containerd containerd_ready
  import_image "$(set_dir pause)/pause.oci.tar"
  import_image "$(set_dir coredns)/coredns.oci.tar"
}

start_node() {
  wait_port_free 10250
  daemon kubelet "$(bin kubelet)" --config "$CONF/kubelet.yaml" --kubeconfig "$CONF/kubelet.kubeconfig" \
    --root-dir "$STATE/kubelet" --cert-dir "$STATE/kubelet/pki" \
    --hostname-override "$NODE_NAME" --node-ip "$NODE_IP"
  daemon kube-proxy "$(bin kube-proxy)" --config "$CONF/kube-proxy.yaml"
}

node_ready() {
  [ "$(kc --request-timeout 5s get node "$NODE_NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]
}
default_account_there() { kc -n default get serviceaccount default; }

wait_node() {
  wait_for 60 "the node to be Ready" node_ready
  # It appears some time after the API server is ready. No pod can be created before.
  wait_for 20 "the ServiceAccount default" default_account_there
}
