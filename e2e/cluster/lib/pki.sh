# shellcheck shell=bash
# Creates certificates and kubeconfigs, new for every cluster and valid for ten years.

make_pki() {
  mkdir -p "$PKI" "$CONF"
  chmod 0700 "$PKI"
  printf '[req]\ndistinguished_name=dn\n[dn]\n' >"$PKI/openssl.cnf"
  authority ca bloomery-cluster-ca
  authority front-proxy-ca bloomery-front-proxy-ca
  # A separate key pair signs service account tokens.
  openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/sa.key"
  openssl ec -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null

  local names="DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  names+=",DNS:kubernetes.default.svc.cluster.local,DNS:localhost"
  certificate ca apiserver /CN=kube-apiserver serverAuth \
    "$names,IP:$API_SERVICE_IP,IP:$NODE_IP,IP:127.0.0.1"
  certificate ca kubelet-server "/CN=$NODE_NAME" serverAuth "DNS:$NODE_NAME,IP:$NODE_IP"
  certificate ca apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
  certificate front-proxy-ca front-proxy /CN=front-proxy-client clientAuth

  kubeconfig_for /O=system:masters/CN=admin "$ADMIN_KUBECONFIG"
  kubeconfig_for /CN=system:kube-controller-manager "$CONF/kube-controller-manager.kubeconfig"
  kubeconfig_for /CN=system:kube-scheduler "$CONF/kube-scheduler.kubeconfig"
  kubeconfig_for /CN=system:kube-proxy "$CONF/kube-proxy.kubeconfig"
  kubeconfig_for /O=system:masters/CN=bloomery-volume-renewer "$CONF/renewer.kubeconfig"
  kubeconfig_for "/O=system:nodes/CN=system:node:$NODE_NAME" "$CONF/kubelet.kubeconfig"
}

# new_certificate NAME SUBJECT OPENSSL-ARGUMENT...
new_certificate() {
  local name=$1 subject=$2
  shift 2
  openssl req -x509 -config "$PKI/openssl.cnf" -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
    -nodes -days 3650 -subj "$subject" -keyout "$PKI/$name.key" -out "$PKI/$name.crt" "$@" 2>"$PKI/openssl.log" ||
    die "openssl could not make $name: $(cat "$PKI/openssl.log")"
}

# authority NAME COMMON-NAME
authority() {
  new_certificate "$1" "/CN=$2" -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=critical,keyCertSign,digitalSignature
}

# certificate AUTHORITY NAME SUBJECT USAGE [SUBJECT-ALTERNATIVE-NAMES]
certificate() {
  local san=()
  if [ -n "${5:-}" ]; then san=(-addext "subjectAltName=$5"); fi
  new_certificate "$2" "$3" -CA "$PKI/$1.crt" -CAkey "$PKI/$1.key" \
    -addext basicConstraints=critical,CA:FALSE -addext keyUsage=critical,digitalSignature \
    -addext "extendedKeyUsage=$4" "${san[@]}"
}

# kubeconfig_for SUBJECT FILE
kubeconfig_for() {
  local name
  name=client-$(basename "$2" .kubeconfig)
  certificate ca "$name" "$1" clientAuth
  (umask 077 && cat >"$2") <<EOF
apiVersion: v1
kind: Config
current-context: bloomery
clusters:
  - name: bloomery
    cluster:
      server: $API_URL
      certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")
contexts:
  - name: bloomery
    context: { cluster: bloomery, user: bloomery }
users:
  - name: bloomery
    user:
      client-certificate-data: $(base64 -w0 "$PKI/$name.crt")
      client-key-data: $(base64 -w0 "$PKI/$name.key")
EOF
}
