# shellcheck shell=bash
# Builds the binaries from Go modules into a cache outside of the checkout. The name of
# a cache directory contains a hash of all its inputs, so its content is never stale.

# The node starts without Helm.
NODE_SETS=(kubernetes runc containerd etcd coredns pause)
SETS=("${NODE_SETS[@]}" helm)
# Only stories and hack/check-network use these, so `up` does not build them.
STORY_SETS=(kstatus kwok cyclonus)

# version_of SET MODULE: the version in go.mod.
version_of() { sed -n "s|^\(require \)\?\s*$2 \(v[^ ]*\).*|\2|p" "$CLUSTER_DIR/go/$1/go.mod" | head -1; }

# flags_of SET: the arguments of "go build", one per line.
flags_of() {
  local x='-s -w' v tags=
  case $1 in
    kubernetes)
      # Without a version, clients, kubelet and feature gates do not work correctly.
      v=$(version_of kubernetes k8s.io/kubernetes)
      for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        x+=" -X $p.gitVersion=$v -X $p.gitMajor=1 -X $p.gitMinor=$(cut -d. -f2 <<<"$v")"
        x+=" -X $p.gitTreeState=clean -X $p.gitCommit=gomodule"
      done ;;
    containerd)
      tags=no_btrfs,no_devmapper,no_zfs
      x+=" -X github.com/containerd/containerd/v2/version.Version=$(version_of containerd github.com/containerd/containerd/v2)" ;;
    helm) x+=" -X helm.sh/helm/v4/internal/version.version=$(version_of helm helm.sh/helm/v4)" ;;
    runc) tags=seccomp,netgo,osusergo ;;
  esac
  # The linker omits DWARF (-w), so the compiler need not generate it: 10 % less time.
  printf '%s\n' -trimpath -buildvcs=false -p 2 ${tags:+-tags "$tags"} -gcflags all=-dwarf=false -ldflags "$x"
}

# set_dir SET: the cache directory of a set, which may not exist yet.
set_dir() {
  local sum
  if [ "$1" = pause ]; then
    sum=$(cat "$CLUSTER_DIR/image/pause.c" "$CLUSTER_DIR/lib/images.sh" | key)
  else
    sum=$({ cat "$CLUSTER_DIR/go/$1"/*; flags_of "$1"; uname -m; } | key)
  fi
  printf '%s/%s-%s' "$CACHE" "$1" "$sum"
}
key() { sha256sum | cut -c1-16; }

# set_of NAME: the set of a binary.
set_of() {
  case $1 in
    check-network) echo cyclonus ;;
    etcd | coredns | helm | runc | pause | kstatus | kwok) echo "$1" ;;
    containerd* | ctr) echo containerd ;;
    *) echo kubernetes ;;
  esac
}

# bin NAME: the path of a binary of the cache.
bin() { printf '%s/%s' "$(set_dir "$(set_of "$1")")" "$1"; }

# built_bin NAME: prints the path of a binary, and builds its set if it is missing.
built_bin() {
  [ -x "$(bin "$1")" ] || binaries "$(set_of "$1")"
  printf '%s\n' "$(bin "$1")"
}

build_go_set() {
  local set=$1 out=$2 flags=() cgo=0 what=tool
  type -P go >/dev/null || die "no go in PATH to build $set with"
  mapfile -t flags < <(flags_of "$set")
  if [ "$set" = runc ]; then cgo=1; build_packages; fi
  # "tool" means all tool directives of the go.mod.
  if [ -e "$CLUSTER_DIR/go/$set/main.go" ]; then what=.; fi
  # Rare garbage collection takes a fifth off the time. GOMEMLIMIT bounds the memory of each compiler.
  logged "$BUILD_LOGS/go-$set.log" "build $set (go)" \
    env -C "$CLUSTER_DIR/go/$set" CGO_ENABLED="$cgo" GOWORK=off GOGC=800 GOMEMLIMIT=1GiB go build "${flags[@]}" -o "$out/" "$what"
  # The last part of etcd's import path is "server".
  if [ "$set" = etcd ]; then mv "$out/server" "$out/etcd"; fi
  if [ "$set" = cyclonus ]; then mv "$out/cyclonus" "$out/check-network"; fi
}

build_pause() {
  build_packages
  gcc -Os -static -s -o "$1/pause" "$CLUSTER_DIR/image/pause.c"
}

# build_set SET: builds in a temporary directory and renames it, so the directory is complete or absent.
build_set() {
  local set=$1 dir tmp
  dir=$(set_dir "$set")
  mkdir -p "$CACHE"
  tmp=$(mktemp -d "$CACHE/.build-$set.XXXXXX")
  chmod 0755 "$tmp"
  if [ "$set" = pause ]; then build_pause "$tmp"; else build_go_set "$set" "$tmp"; fi
  case $set in
    pause) oci_archive "$PAUSE_IMAGE" "$tmp/pause" "$tmp/pause.oci.tar" ;;
    coredns) oci_archive "$COREDNS_IMAGE" "$tmp/coredns" "$tmp/coredns.oci.tar" ;;
  esac
  mv -T "$tmp" "$dir" 2>/dev/null || { [ -d "$dir" ] && rm -rf "$tmp"; }
}

# binaries [SET...]: builds the missing ones of these sets, or of all sets, one after another. Two Go builds at once would be slower.
binaries() {
  local set
  (($#)) || set -- "${SETS[@]}"
  mkdir -p "$CACHE"
  exec 8>"$CACHE/.lock"
  spinning "wait for another build of the cluster's programs" flock 8
  rm -rf "$CACHE"/.build-*  # left by a killed build
  for set; do
    if [ -d "$(set_dir "$set")" ]; then continue; fi
    step "build $set" build_set "$set"
  done
  prune_binaries
  exec 8>&-
}

# helm_in_background: builds Helm while the node starts. `cluster helm` waits for the lock, builds what is missing, and reports errors.
helm_in_background() {
  if [ -d "$(set_dir helm)" ]; then return; fi
  mkdir -p "$BUILD_LOGS"
  nice -n 10 "$CLUSTER_DIR/cluster" helm </dev/null >"$BUILD_LOGS/helm.log" 2>&1 9>&- &
}

# mark_binaries_used: sets the modification time of each directory to now, so that it shows the last use.
mark_binaries_used() {
  local set
  for set in "${SETS[@]}" "${STORY_SETS[@]}"; do touch --no-create "$(set_dir "$set")"; done
}

# prune_binaries: deletes directories that no checkout has used for 30 days.
prune_binaries() {
  local set
  mark_binaries_used
  for set in "${SETS[@]}" "${STORY_SETS[@]}"; do
    find "$CACHE" -mindepth 1 -maxdepth 1 -type d -name "$set-????????????????" -mtime +30 -exec rm -rf {} +
  done
}
