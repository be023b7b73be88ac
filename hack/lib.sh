# shellcheck shell=bash
# Shared functions of the scripts in hack/, which source this file.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The cache is outside of the checkout: a fresh clone can use it, and losing it costs only time.
# shellcheck disable=SC2034  # read by the scripts that source this file
cache=${BLOOMERY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bloomery}
# shellcheck disable=SC2034
cluster=$root/e2e/cluster/cluster
# shellcheck source=e2e/cluster/lib/progress.sh
source "$root/e2e/cluster/lib/progress.sh"

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# need COMMAND PACKAGE...: makes sure that COMMAND exists, and installs the Debian packages if it does not.
need() {
  local command=$1
  shift
  command -v "$command" >/dev/null && return
  install_packages "$@"
  command -v "$command" >/dev/null || die "the packages '$*' were installed, but there is no '$command' on PATH"
}

# install_packages PACKAGE...: by apt, as root or through sudo.
install_packages() {
  command -v apt-get >/dev/null || die "please install: $* (there is no apt-get here to do it)"
  say "installing $* (apt)"
  apt_update_once
  apt_get "$cache/log" apt-install install -y --no-install-recommends "$@" || die "apt-get could not install: $*"
}

# apt_update_once: fetches package lists if the machine has none, or none younger than a day.
apt_update_once() {
  if [[ -z $(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mtime -1 -print -quit 2>/dev/null) ]]; then
    apt_get "$cache/log" apt-update update || say "apt-get update failed: continuing with the existing lists"
  fi
}

# kubeconfig: the path of the kubeconfig in use: the named one, or the local cluster's. Never the user's current context.
kubeconfig() {
  if [[ -n ${BLOOMERY_KUBECONFIG:-} ]]; then
    [[ -r $BLOOMERY_KUBECONFIG ]] || die "BLOOMERY_KUBECONFIG names '$BLOOMERY_KUBECONFIG', which cannot be read"
    printf '%s\n' "$BLOOMERY_KUBECONFIG"
  else
    "$cluster" kubeconfig
  fi
}

# use_cluster: sets $config and $kubectl for the cluster in use. For your own cluster, it prefers your own kubectl.
# shellcheck disable=SC2034  # for the scripts that source this file
use_cluster() {
  config=$(kubeconfig)
  if [[ -n ${BLOOMERY_KUBECONFIG:-} ]]; then
    kubectl=$(type -P kubectl) || kubectl=$("$cluster" kubectl)
  else
    kubectl=$("$cluster" kubectl)
    # The discovery cache is deleted with the cluster, and nothing is written to ~/.kube.
    export KUBECACHEDIR=${config%/*}/kubectl-cache
  fi
}

# on_cluster ARGUMENT...: runs kubectl on the cluster in use, after use_cluster.
on_cluster() { "$kubectl" --kubeconfig "$config" "$@"; }

# use_helm: sets $helm. For your own cluster, it prefers your own Helm 4. It waits for a Helm that is being built.
# shellcheck disable=SC2034  # for the scripts that source this file
use_helm() {
  if [[ -n ${BLOOMERY_KUBECONFIG:-} && $(helm version --short 2>/dev/null) == v4* ]]; then
    helm=$(type -P helm)
  else
    helm=$("$cluster" helm)
  fi
}

# forward_gateway LOG: forwards a local port to the gateway in the cluster in use, and sets $gateway_url and $forwarding, the id of the
# process. It goes on after this script, and its messages are in LOG.
# shellcheck disable=SC2034  # for the scripts that source this file
forward_gateway() {
  # A file, because a script that reads the output of another one waits until all writers of a pipe have ended.
  : >"$1"
  setsid "$kubectl" --kubeconfig "$config" --namespace bloomery-system port-forward service/bloomery-gateway :80 </dev/null >"$1" 2>&1 &
  forwarding=$!
  until gateway_url=$(sed -n 's#^Forwarding from \(127.0.0.1:[0-9]*\) .*#http://\1#p' "$1") && [[ -n $gateway_url ]]; do
    kill -0 "$forwarding" 2>/dev/null || return 1
    sleep 0.1
  done
}

# python_tool COMMAND PACKAGE VERSION: prints the path of a prebuilt tool, installed from PyPI into the cache.
python_tool() {
  local command=$1 package=$2 version=$3
  local venv=$cache/tools/$package-$version
  if [[ ! -x $venv/bin/$command ]]; then
    python3 -c 'import venv, ensurepip' 2>/dev/null || install_packages python3 python3-venv
    say "installing $package $version (PyPI)"
    rm -rf "$venv"
    python3 -m venv "$venv" </dev/null >&2
    logged "$cache/log/pip-$package.log" "install $package (pip)" \
      "$venv/bin/pip" install --disable-pip-version-check --only-binary :all: "$package==$version" || {
      rm -rf "$venv"
      die "pip could not install $package $version"
    }
  fi
  printf '%s\n' "$venv/bin/$command"
}

# python_environment NAME REQUIREMENTS: prints the path of a python with the packages that REQUIREMENTS pins, installed from PyPI into the cache.
python_environment() {
  local name=$1 requirements=$2 wanted venv
  wanted=$({ python3 --version && cat "$requirements"; } | sha256sum | cut -c1-12)
  venv=$cache/tools/$name-$wanted
  if [[ ! -e $venv/complete ]]; then
    python3 -c 'import venv, ensurepip' 2>/dev/null || install_packages python3 python3-venv
    say "installing $name (PyPI)"
    rm -rf "$venv"
    python3 -m venv "$venv" </dev/null >&2
    logged "$cache/log/pip-$name.log" "install $name (pip)" \
      "$venv/bin/pip" install --disable-pip-version-check --only-binary :all: --no-deps --requirement "$requirements" || {
      rm -rf "$venv"
      die "pip could not install what $requirements lists"
    }
    touch "$venv/complete"
  fi
  printf '%s\n' "$venv/bin/python"
}

# node_environment NAME DIRECTORY: prints the path of a directory with node_modules, installed from npm into the cache. DIRECTORY has the
# lock file.
node_environment() {
  local name=$1 locked=$2 wanted environment
  need node nodejs
  need npm npm
  wanted=$(sha256sum <"$locked/package-lock.json" | cut -c1-12)
  environment=$cache/tools/$name-$wanted
  if [[ ! -e $environment/complete ]]; then
    say "installing $name (npm)"
    rm -rf "$environment"
    mkdir -p "$environment"
    cp "$locked/package.json" "$locked/package-lock.json" "$environment"
    logged "$cache/log/npm-$name.log" "install $name (npm)" \
      npm ci --prefix "$environment" --ignore-scripts --no-audit --no-fund || {
      rm -rf "$environment"
      die "npm could not install what $locked/package-lock.json lists"
    }
    touch "$environment/complete"
  fi
  printf '%s\n' "$environment"
}

# own_buildah ARGUMENT...: buildah with a separate storage in the cache, so the user's images are not changed.
own_buildah() {
  BUILDAH_ISOLATION=chroot buildah --root "$cache/buildah/root" --runroot "$cache/buildah/run" --storage-driver vfs "$@"
}

# test_targets stories|fast: the names of the workspace's integration tests: the stories of e2e, or all others.
test_targets() {
  cargo metadata --no-deps --format-version 1 --locked | jq -r --arg kind "$1" '
    .packages[] | select((.name == "bloomery-e2e") == ($kind == "stories"))
    | .targets[] | select(.kind == ["test"]) | .name' | sort
}
