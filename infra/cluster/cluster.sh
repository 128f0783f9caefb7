# . cluster.sh: a real Kubernetes with one node, in a network namespace of its own: etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler, containerd, kubelet, kube-proxy, CoreDNS and metrics-server. Nothing listens outside of the namespace and
# no iptables rule outside of it changes. Needs env.sh, root, overlayfs, and cgroup v1 with all controllers or v2.
NETNS=daegi-k8s
CLUSTER=$CACHE/cluster
NODE=10.99.0.1 # on an interface inside of the namespace
PODS=10.244.0.0/16 SERVICES=10.96.0.0/16 API=10.96.0.1 DNS=10.96.0.10
export KUBECONFIG=$CLUSTER/admin.conf

# nsenter and not `ip netns exec`, which mounts a new /sys without the cgroups.
inside() { nsenter --net="/run/netns/$NETNS" "$@"; }
k() { inside "$BIN/kubectl" "$@"; }
h() { inside "$BIN/helm" "$@"; }
in_containerd() { ctr -a "$CLUSTER/containerd/sock" -n k8s.io "$@"; }

# start NAME COMMAND…: in the namespace, in the background; its pid is kept.
start() {
  local name=$1; shift
  # exec all the way, so that the pid is the program's.
  (exec nsenter --net="/run/netns/$NETNS" setsid "$@") >"$CLUSTER/log/$name.log" 2>&1 </dev/null &
  echo $! >"$CLUSTER/$name.pid"
}
# end NAME: by its pid, by force after 5 s.
end() {
  local pid
  pid=$(cat "$CLUSTER/$1.pid" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 25); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$CLUSTER/$1.pid"
}

make_network() {
  ip netns list | grep -q "^$NETNS\b" && return
  ip netns add "$NETNS"
  inside ip link set lo up
  # Some kernels have no dummy interface: this is a pair whose other end stays in the same namespace.
  inside ip link add node0 type veth peer name node1
  inside ip link set node1 up
  inside ip addr add "$NODE/24" dev node0
  inside ip link set node0 up
  # A default route that leads nowhere: kube-proxy and the kubelet insist on one.
  inside ip route add default dev node0
  inside sysctl -qw net.ipv4.ip_forward=1
  inside sysctl -qw net.bridge.bridge-nf-call-iptables=1 2>/dev/null || true
}

# certificate NAME SUBJECT USE [ALTERNATIVE NAMES]
certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
    -extfile <(printf 'extendedKeyUsage=%s\n%s' "$3" "${4:+subjectAltName=$4}") 2>/dev/null
}
make_certificates() {
  local dir=$CLUSTER/pki who
  mkdir -p "$dir"
  (
    cd "$dir"
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -keyout ca.key -out ca.crt -subj /CN=daegi-test-ca 2>/dev/null
    openssl genrsa -out sa.key 2048 2>/dev/null
    openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
    certificate apiserver /CN=kube-apiserver serverAuth "IP:$NODE,IP:127.0.0.1,IP:$API,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
    certificate admin /O=system:masters/CN=admin clientAuth
    certificate kcm /CN=system:kube-controller-manager clientAuth
    certificate scheduler /CN=system:kube-scheduler clientAuth
    certificate proxy /CN=system:kube-proxy clientAuth
    certificate node /O=system:nodes/CN=system:node:node clientAuth
    certificate kubelet /CN=node serverAuth "IP:$NODE,DNS:node"
    certificate to-kubelet /O=system:masters/CN=apiserver-to-kubelet clientAuth
    certificate front-proxy /CN=front-proxy clientAuth
  )
  for who in admin kcm scheduler proxy node; do
    cat >"$CLUSTER/$who.conf" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$NODE:6443", certificate-authority: $dir/ca.crt}}]
users: [{name: u, user: {client-certificate: $dir/$who.crt, client-key: $dir/$who.key}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
Y
  done
}

# etcd and the API server: enough for a server-side dry run.
start_apiserver() {
  local pki=$CLUSTER/pki
  need etcd etcd-server; need ip iproute2; need openssl openssl; need curl curl
  mkdir -p "$CLUSTER/log"
  make_network
  make_certificates
  start etcd etcd --data-dir "$CLUSTER/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380 --unsafe-no-fsync
  start kube-apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address="$NODE" --advertise-address="$NODE" --secure-port=6443 \
    --service-cluster-ip-range="$SERVICES" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
    --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --kubelet-client-certificate="$pki/to-kubelet.crt" --kubelet-client-key="$pki/to-kubelet.key" --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=front-proxy --requestheader-username-headers=X-Remote-User \
    --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$pki/front-proxy.crt" --proxy-client-key-file="$pki/front-proxy.key" --enable-aggregator-routing=true --v=1
  within 60 inside curl -sf --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" "https://$NODE:6443/readyz" ||
    { tail "$CLUSTER/log/kube-apiserver.log" >&2; return 1; }
}

start_controllers() {
  local pki=$CLUSTER/pki
  start kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig="$CLUSTER/kcm.conf" --cluster-cidr="$PODS" --allocate-node-cidrs --service-cluster-ip-range="$SERVICES" \
    --root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" --use-service-account-credentials --bind-address=127.0.0.1 --leader-elect=false
  start kube-scheduler "$BIN/kube-scheduler" --kubeconfig="$CLUSTER/scheduler.conf" --bind-address=127.0.0.1 --leader-elect=false
}

# The images of the engine, under the names that they have there: none is pulled.
import_images() {
  local image
  for image in "$@"; do
    docker save "$image" | in_containerd images import - >/dev/null || return
  done
}
# program_image NAME FILE: an image that holds one static program.
program_image() {
  local dir
  dir=$(mktemp -d)
  cp "$2" "$dir/program"
  printf 'FROM scratch\nCOPY program /program\nUSER 65532:65532\nENTRYPOINT ["/program"]\n' >"$dir/Dockerfile"
  DOCKER_BUILDKIT=0 docker build -q -t "localhost/$1:1" "$dir" >/dev/null
  rm -rf "$dir"
}

start_node() {
  local pki=$CLUSTER/pki containerd=$CLUSTER/containerd
  need containerd containerd; need runc runc; need iptables iptables; need conntrack conntrack; need gcc gcc
  [ -x /usr/lib/cni/bridge ] || need cni-plugins containernetworking-plugins
  mkdir -p "$containerd" "$CLUSTER/cni" "$CLUSTER/kubelet"
  : >"$CLUSTER/resolv.conf"
  cat >"$containerd/config.toml" <<T
version = 2
root = "$containerd/root"
state = "$containerd/state"
[grpc]
  address = "$containerd/sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Root has no CAP_SYS_RESOURCE in some sandboxes, so no process can be made less likely to be killed than containerd itself.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$CLUSTER/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
T
  cat >"$CLUSTER/cni/10-bridge.conflist" <<J
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$CLUSTER/cni-data"}}]}
J
  start containerd containerd --config "$containerd/config.toml"
  within 20 in_containerd version || { tail "$CLUSTER/log/containerd.log" >&2; return 1; }
  [ -x "$BIN/pause" ] || gcc -Os -static -DVERSION=1 -o "$BIN/pause" "$SRC/kubernetes/build/pause/linux/pause.c"
  local program
  for program in pause coredns metrics-server; do program_image "$program" "$BIN/$program"; done
  import_images localhost/{pause,coredns,metrics-server}:1
  cat >"$CLUSTER/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet.crt
tlsPrivateKeyFile: $pki/kubelet.key
address: $NODE
healthzBindAddress: 127.0.0.1
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix://$containerd/sock
clusterDNS: [$DNS]
clusterDomain: cluster.local
resolvConf: $CLUSTER/resolv.conf
failSwapOn: false
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
serializeImagePulls: false
Y
  start kubelet "$BIN/kubelet" --config="$CLUSTER/kubelet.yaml" --kubeconfig="$CLUSTER/node.conf" --root-dir="$CLUSTER/kubelet" \
    --hostname-override=node --node-ip="$NODE" --cert-dir="$CLUSTER/kubelet/pki" --v=2
  cat >"$CLUSTER/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $CLUSTER/proxy.conf}
mode: iptables
clusterCIDR: $PODS
hostnameOverride: node
bindAddress: $NODE
metricsBindAddress: 127.0.0.1:10249
healthzBindAddress: 127.0.0.1:10256
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
Y
  start kube-proxy "$BIN/kube-proxy" --config="$CLUSTER/proxy.yaml"
  within 60 k get node node && k wait --for=condition=Ready node/node --timeout=120s >/dev/null
  k apply -f infra/cluster/addons.yaml >/dev/null
  k -n kube-system rollout status deploy/coredns deploy/metrics-server --timeout=120s >/dev/null
}

start_cluster() { start_apiserver && start_controllers && start_node; }

# Ends everything by pid and leaves nothing but the cache.
stop_cluster() {
  local name pod
  for name in kube-proxy kubelet kube-scheduler kube-controller-manager; do end "$name"; done
  if [ -S "$CLUSTER/containerd/sock" ]; then
    for pod in $(in_containerd tasks ls -q 2>/dev/null); do in_containerd tasks kill -s KILL "$pod" 2>/dev/null || true; done
    sleep 1
    for pod in $(in_containerd containers ls -q 2>/dev/null); do in_containerd tasks rm -f "$pod" >/dev/null 2>&1 || true; done
  fi
  for name in containerd kube-apiserver etcd; do end "$name"; done
  # What is mounted below, the deepest first.
  awk -v dir="$CLUSTER/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount" || true; done
  for name in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/kubepods; do [ ! -d "$name" ] || find "$name" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
  for name in /run/netns/cni-*; do [ ! -e "$name" ] || ip netns del "${name##*/}" 2>/dev/null || true; done
  ip netns del "$NETNS" 2>/dev/null || true
  rm -rf "$CLUSTER/etcd" "$CLUSTER/kubelet" "$CLUSTER/cni-data" "$CLUSTER/containerd"
}
