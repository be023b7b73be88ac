# shellcheck shell=bash
# etcd, the API server, the controller manager and the scheduler.

start_etcd() {
  local port
  for port in 2379 2380 "$API_PORT"; do wait_port_free "$port"; done
  daemon etcd "$(bin etcd)" --name bloomery --data-dir "$STATE/etcd" --unsafe-no-fsync \
    --listen-client-urls "$ETCD_URL" --advertise-client-urls "$ETCD_URL" \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster bloomery=http://127.0.0.1:2380 --quota-backend-bytes 8589934592 --log-level warn
}

# OpenShift has the plugin OwnerReferencesPermissionEnforcement.
start_apiserver() {
  daemon kube-apiserver "$(bin kube-apiserver)" \
    --etcd-servers "$ETCD_URL" --bind-address "$NODE_IP" --advertise-address "$NODE_IP" \
    --secure-port "$API_PORT" --service-cluster-ip-range "$SERVICE_CIDR" \
    --authorization-mode Node,RBAC --allow-privileged=true \
    --enable-admission-plugins NodeRestriction,OwnerReferencesPermissionEnforcement \
    --client-ca-file "$PKI/ca.crt" --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" \
    --kubelet-client-certificate "$PKI/apiserver-kubelet.crt" --kubelet-client-key "$PKI/apiserver-kubelet.key" \
    --kubelet-certificate-authority "$PKI/ca.crt" --kubelet-preferred-address-types InternalIP \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$PKI/sa.pub" --service-account-signing-key-file "$PKI/sa.key" \
    --requestheader-client-ca-file "$PKI/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file "$PKI/front-proxy.crt" --proxy-client-key-file "$PKI/front-proxy.key" \
    --enable-aggregator-routing=true --profiling=false \
    --audit-policy-file "$CONF/audit-policy.yaml" --audit-log-path "$AUDIT_LOG" \
    --audit-log-maxsize 200 --audit-log-maxbackup 3
}

apiserver_ready() { kc --request-timeout 5s get --raw /readyz; }
kube_system_there() { kc get namespace kube-system; }

wait_apiserver() {
  wait_for 60 "the API server" apiserver_ready
  wait_for 20 "the namespace kube-system" kube_system_there
}

start_controllers() {
  daemon kube-controller-manager "$(bin kube-controller-manager)" \
    --kubeconfig "$CONF/kube-controller-manager.kubeconfig" \
    --authentication-kubeconfig "$CONF/kube-controller-manager.kubeconfig" \
    --authorization-kubeconfig "$CONF/kube-controller-manager.kubeconfig" \
    --leader-elect=false --use-service-account-credentials=true --bind-address 127.0.0.1 \
    --root-ca-file "$PKI/ca.crt" --service-account-private-key-file "$PKI/sa.key" \
    --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key" \
    --client-ca-file "$PKI/ca.crt" --cluster-name bloomery --controllers '*,-node-ipam-controller' \
    --kube-api-qps "$CONTROLLER_QPS" --kube-api-burst $((CONTROLLER_QPS * 3 / 2)) --profiling=false \
    --flex-volume-plugin-dir "$STATE/kubelet/volume-plugins"
  daemon kube-scheduler "$(bin kube-scheduler)" --config "$CONF/scheduler.yaml" --bind-address 127.0.0.1 \
    --authentication-kubeconfig "$CONF/kube-scheduler.kubeconfig" \
    --authorization-kubeconfig "$CONF/kube-scheduler.kubeconfig"
}
