# shellcheck shell=bash
# Installs missing Debian packages.

# need_packages FILE=PACKAGE...: installs each package whose FILE is missing. A FILE without a
# slash is a command in PATH.
need_packages() {
  local pair file missing=()
  for pair in "$@"; do
    file=${pair%%=*}
    case $file in
      */*) [ -e "$file" ] || missing+=("${pair#*=}") ;;
      *) PATH=$PATH:/usr/sbin:/sbin type -P "$file" >/dev/null || missing+=("${pair#*=}") ;;
    esac
  done
  ((${#missing[@]})) || return 0
  install_packages "${missing[@]}"
}

install_packages() {
  type -P apt-get >/dev/null || die "missing: $* (no apt-get here to install them)"
  # The update is needed on images without package lists.
  apt_get "$BUILD_LOGS" apt-update update || die "apt-get could not update the package lists"
  apt_get "$BUILD_LOGS" apt-install install -y --no-install-recommends "$@" || die "apt-get could not install: $*"
}

runtime_packages() {
  need_packages ip=iproute2 nft=nftables openssl=openssl jq=jq mount=mount \
    flock=util-linux findmnt=util-linux "$CNI_PLUGINS/bridge=containernetworking-plugins" \
    "/usr/lib/$(uname -m)-linux-gnu/libseccomp.so.2=libseccomp2"
}

build_packages() {
  need_packages gcc=gcc pkg-config=pkg-config /usr/include/seccomp.h=libseccomp-dev \
    /usr/include/stdio.h=libc6-dev
}
