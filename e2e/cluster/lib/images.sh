# shellcheck shell=bash
# Writes images of one static program each, without an image builder. So the cluster
# starts without a registry.

# oci_archive NAME PROGRAM ARCHIVE
oci_archive() (
  name=$1 program=$2 archive=$3
  arch=$(uname -m | sed 's/x86_64/amd64/;s/aarch64/arm64/')
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/root" "$work/oci/blobs/sha256"
  cp "$program" "$work/root/"
  # The archive must not depend on the clock: the same program gives the same bytes.
  tar -C "$work/root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer" .
  layer=$(blob "$work" layer)
  printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/%s"],"User":"65532:65532"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$arch" "$(basename "$program")" "${layer%% *}" >"$work/config"
  config=$(blob "$work" config)
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
    "$(descriptor image.config.v1+json "$config")" "$(descriptor image.layer.v1.tar "$layer")" >"$work/manifest"
  manifest=$(descriptor image.manifest.v1+json "$(blob "$work" manifest)")
  printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
    "${manifest%\}}" "$name" "$name" >"$work/oci/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci/oci-layout"
  tar -C "$work/oci" --sort=name --mtime=@0 -cf "$archive" .
)

# blob WORK FILE: moves the file to the blobs, and prints "digest size".
blob() {
  local digest
  digest=$(sha256sum "$1/$2" | cut -d' ' -f1)
  mv "$1/$2" "$1/oci/blobs/sha256/$digest"
  printf '%s %s' "$digest" "$(stat -c %s "$1/oci/blobs/sha256/$digest")"
}

# descriptor TYPE "DIGEST SIZE"
descriptor() {
  printf '{"mediaType":"application/vnd.oci.%s","digest":"sha256:%s","size":%s}' "$1" "${2% *}" "${2#* }"
}

# import_image ARCHIVE: imports an archive, and prints the output of ctr only if it fails.
import_image() {
  local output
  output=$("$(bin ctr)" --address "$CONTAINERD_SOCK" --namespace k8s.io images import "$1" 2>&1) ||
    die "could not import $1: $output"
}
