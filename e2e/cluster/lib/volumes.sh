# shellcheck shell=bash
# A fixed stock of local PersistentVolumes. There is no provisioner: a claim binds a volume
# of the stock. A released volume is wiped and returned to the stock.

# One line per size: NUMBER SIZE. Sizes are not enforced: all volumes are directories of one
# disk.
STOCK="${BLOOMERY_VOLUMES:-40} 1Gi
8 20Gi"

volume_manifest() {
  local name=$1 size=$2
  cat <<EOF
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $name
  labels: { bloomery.local/stock: "true" }
spec:
  capacity: { storage: $size }
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: bloomery-local
  volumeMode: Filesystem
  local: { path: "$VOLUMES/$name" }
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions:
            - { key: kubernetes.io/hostname, operator: In, values: ["$NODE_NAME"] }
EOF
}

make_volumes() {
  local number size i name
  while read -r number size; do
    for ((i = 1; i <= number; i++)); do
      name=$(printf 'local-%s-%03d' "${size,,}" "$i")
      fresh_directory "$VOLUMES/$name"
      volume_manifest "$name" "$size"
    done
  done <<<"$STOCK" >"$CONF/volumes.yaml"
  kc create -f "$CONF/volumes.yaml" >/dev/null
}

# fresh_directory: makes the directory like a new disk: empty, owned by root. The kubelet
# then applies fsGroup.
fresh_directory() {
  mkdir -p "$1"
  find "$1" -mindepth 1 -delete
  chown 0:0 "$1"
  chmod 0755 "$1"
}

# renew_volume NAME SIZE
renew_volume() {
  case $1 in local-*) ;; *) return 0 ;; esac
  echo "$(date -Is) renewing $1"
  # No pod can use a released volume any more.
  renewer_kubectl delete persistentvolume "$1" && fresh_directory "$VOLUMES/$1" &&
    volume_manifest "$1" "$2" | renewer_kubectl create -f -
}

renewer_kubectl() { "$KUBECTL" --kubeconfig "$CONF/renewer.kubeconfig" "$@"; }

# renew_volumes: the daemon. It watches instead of polling, which costs nothing while idle.
# The watch ends from time to time; a new one begins with the current state.
renew_volumes() {
  local name phase size uid
  declare -A renewed=()
  KUBECTL=$(bin kubectl)
  while :; do
    while read -r name phase size uid; do
      # The deletion of the old volume is reported as "Released" too. A second renewal could
      # delete a volume that is bound again.
      if [ "$phase" != Released ] || [ -n "${renewed[$uid]:-}" ]; then continue; fi
      if renew_volume "$name" "$size"; then renewed[$uid]=1; else restock; fi
    done < <(watch_volumes)
    sleep 1
    restock
  done
}

# restock: creates missing volumes, for example after a failure or a test.
restock() { renewer_kubectl create -f "$CONF/volumes.yaml" 2>&1 | grep -v AlreadyExists || true; }

watch_volumes() {
  renewer_kubectl get persistentvolumes -l bloomery.local/stock=true --watch --no-headers -o \
    custom-columns=NAME:.metadata.name,PHASE:.status.phase,SIZE:.spec.capacity.storage,UID:.metadata.uid
}

start_renewer() { daemon volume-renewer "$CLUSTER_DIR/cluster" _renew; }
