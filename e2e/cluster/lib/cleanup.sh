# shellcheck shell=bash
# Removes a cluster that is running, partly started or killed. No function relies on
# the success of an earlier one.

DAEMONS=(volume-renewer kubelet containerd kube-proxy kube-scheduler kube-controller-manager kube-apiserver etcd)

# anything_left: succeeds if a part of a cluster exists.
anything_left() {
  [ -e "$STATE" ] || ip link show "$BRIDGE" >/dev/null 2>&1 ||
    [ -n "$(our_processes)" ] || nft list table ip kube-proxy >/dev/null 2>&1
}

take_down() {
  step "containers and daemons" kill_everything
  step "mounts" remove_mounts
  step "network" remove_network
  step "cgroups and state" remove_state
}

kill_everything() {
  local name
  # In this order, because the kubelet and containerd would restart killed processes.
  for name in "${DAEMONS[@]}"; do kill_daemon "$name"; done
  kill_our_processes
}

mounts_below() {
  # mountinfo writes a space as \040.
  awk -v dir="$1/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo |
    while read -r path; do printf '%b\n' "${path//\\/\\0}"; done | sort -r
}

remove_mounts() {
  local tries
  for tries in 1 2 3; do
    # All in one call, because there may be a thousand; then a lazy unmount of the busy ones.
    mounts_below "$STATE" | xargs -r -d '\n' umount 2>/dev/null || true
    mounts_below "$STATE" | xargs -r -d '\n' umount -l 2>/dev/null || true
    [ -n "$(mounts_below "$STATE")" ] || return 0
    sleep "0.$tries"
  done
  die "these mounts could not be unmounted: $(mounts_below "$STATE" | tr '\n' ' ')"
}

remove_network() {
  local family
  ip link del "$BRIDGE" 2>/dev/null || true
  for family in ip ip6; do nft delete table "$family" kube-proxy 2>/dev/null || true; done
  nft delete table inet "$CGROUP" 2>/dev/null || true
  # The library that runs CNI plugins always stores its results here.
  rm -f /var/lib/cni/results/bloomery-*
  rmdir /var/lib/cni/results /var/lib/cni 2>/dev/null || true
  if [ -s "$STATE/ip_forward.before" ]; then
    cat "$STATE/ip_forward.before" >/proc/sys/net/ipv4/ip_forward
  fi
}

remove_state() {
  local root
  for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -d "$root/$CGROUP" ] || continue
    find "$root/$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  remove_fixed_paths
  # Renamed first, because deleting can take long on a busy disk.
  if [ -e "$STATE" ]; then mv "$STATE" "$STATE.gone.$$"; fi
  rm -f "$OWNER"
}

# delete_old_state: deletes the renamed state of this run or of a killed one. It does
# not enter mounts, because their content may belong to others.
delete_old_state() { rm -rf --one-file-system "$STATE".gone.*; }

delete_old_state_in_background() {
  (
    close_others
    exec </dev/null >/dev/null 2>&1
    exec setsid rm -rf --one-file-system "$STATE".gone.*
  ) &
}

# Removes files that the kubelet creates at fixed paths: the links to the pods' logs, and
# the socket for device plugins.
remove_fixed_paths() {
  local name
  if [ -d /var/log/containers ]; then
    find /var/log/containers -type l -lname "$LOGS/*" -delete
    rmdir /var/log/containers 2>/dev/null || true
  fi
  for name in kubelet.sock kubelet_internal_checkpoint DEPRECATION; do
    rm -f "/var/lib/kubelet/device-plugins/$name"
  done
  rmdir /var/lib/kubelet/device-plugins /var/lib/kubelet 2>/dev/null || true
}
