#!/usr/bin/env bash
# Makes sure that the base images of docker-compose.yml and the Dockerfile are there, under the names that those files use.
# Where the registries cannot be reached, STAND-INS are made from Debian packages, Maven Central and this machine's Rust.
# A stand-in is not the image of its author: its version, its user and its entry point are imitated. It also contains this
# machine's package sources and certificates, so never push one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=infra/containers/env.sh
. infra/containers/env.sh
work=$CACHE/images
mkdir -p "$work"

have() { docker image inspect "$1" >/dev/null 2>&1; }
label=org.example.daegi.stand-in
pulls() { [ -z "${reachable:-}" ] || return "$reachable"; reachable=0; curl -sm 5 -o /dev/null https://registry-1.docker.io/v2/ || reachable=1; return $reachable; }
# image NAME DIRECTORY TEXT: pulled, or built as a stand-in. The legacy builder needs no plugin; apt inside uses the host's network.
image() {
  have "$1" && return 0
  if pulls && docker pull -q "$1" >/dev/null; then return 0; fi
  say "image $1"
  DOCKER_BUILDKIT=0 docker build -q --network host --label "$label=$3" -t "$1" "$2" >/dev/null 2>&1 || { DOCKER_BUILDKIT=0 docker build --network host "$2"; return 1; }
}
# apt_image NAME TEXT PACKAGE, the rest of the Dockerfile from stdin.
apt_image() {
  local dir=$work/${3%% *}
  mkdir -p "$dir"
  { echo 'FROM daegi-test/apt'
    echo "RUN mkdir -p /usr/share/man/man1 && apt-get update -qq && apt-get install -y -qq --no-install-recommends $3 >/dev/null && rm -rf /var/lib/apt/lists/*"
    cat; } >"$dir/Dockerfile"
  image "$1" "$dir" "$2"
}
from() { sed -n "s/^FROM \(.*$1.*\) AS .*/\1/p" infra/docker/Dockerfile; }

# --- Debian, and the same with this machine's package sources and certificates --------------------------------------
if ! pulls && ! have daegi-test/debian; then
  need debootstrap debootstrap
  say "image daegi-test/debian: debootstrap"
  rm -rf "$work/rootfs"
  debootstrap --variant=minbase bookworm "$work/rootfs" >"$CACHE/log/debootstrap.log"
  rm -rf "$work"/rootfs/var/cache/apt/* "$work"/rootfs/var/lib/apt/lists/*
  tar -C "$work/rootfs" -c . | docker import - daegi-test/debian >/dev/null
  rm -rf "$work/rootfs"
fi
if ! pulls && ! have daegi-test/apt; then
  dir=$work/apt; rm -rf "$dir"
  mkdir -p "$dir/etc/apt/sources.list.d" "$dir/etc/apt/apt.conf.d" "$dir/etc/ssl/certs"
  cp /etc/apt/sources.list.d/*.sources "$dir/etc/apt/sources.list.d/"
  cp /etc/apt/apt.conf.d/99* "$dir/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/"
  cat >"$dir/Dockerfile" <<'D'
FROM daegi-test/debian
RUN rm -f /etc/apt/sources.list
COPY etc /etc
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
D
  image daegi-test/apt "$dir" "debootstrap"
fi

# --- redis: like the official entry point, root gives /data to redis and becomes redis -------------------------------
mkdir -p "$work/redis-server"
cat >"$work/redis-server/entrypoint.sh" <<'D'
#!/bin/sh
set -e
if [ "$(id -u)" = 0 ] && [ "$1" = redis-server ]; then
  find /data \! -user redis -exec chown redis '{}' +
  exec setpriv --reuid redis --regid redis --clear-groups "$@" --protected-mode no
fi
exec "$@"
D
chmod 755 "$work/redis-server/entrypoint.sh"
apt_image "$(image_of ^redis)" "Debian's Redis 7.0" redis-server <<'D'
RUN mkdir -p /data && chown redis /data
COPY entrypoint.sh /usr/local/bin/docker-entrypoint.sh
VOLUME /data
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["redis-server"]
D

# --- nginx -----------------------------------------------------------------------------------------------------------
apt_image "$(image_of ^nginx)" "Debian's nginx 1.22" nginx-light <<'D'
RUN useradd -r -s /usr/sbin/nologin nginx && mkdir -p /var/log/nginx \
 && ln -sf /dev/stdout /var/log/nginx/access.log && ln -sf /dev/stderr /var/log/nginx/error.log
EXPOSE 80
STOPSIGNAL SIGQUIT
CMD ["nginx", "-g", "daemon off;"]
D

# --- Prometheus ------------------------------------------------------------------------------------------------------
apt_image "$(image_of ^prom/)" "Debian's Prometheus 2.42" prometheus <<'D'
RUN mkdir -p /prometheus && chown nobody:nogroup /prometheus
USER nobody
VOLUME /prometheus
WORKDIR /prometheus
EXPOSE 9090
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
D

# --- Kafka: the jars of that release from Maven Central. Like the official image it turns KAFKA_* variables into properties,
# formats the storage and runs as user 1000. ---------------------------------------------------------------------------
kafka=$(image_of ^apache/kafka)
if ! pulls && ! have "$kafka"; then
  need mvn maven
  dir=$work/openjdk-17-jre-headless version=${kafka##*:}
  mkdir -p "$dir/bin"
  if [ ! -d "$dir/libs" ]; then
    say "Kafka $version from Maven Central"
    sed "s#<version>4[.0-9]*</version>#<version>$version</version>#" infra/kafka/pom.xml >"$dir/pom.xml"
    mvn -q -B -f "$dir/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir/libs.part" </dev/null
    for artifact in org.apache.kafka:kafka-{tools,storage,server}:"$version" net.sf.jopt-simple:jopt-simple:5.0.4 net.sourceforge.argparse4j:argparse4j:0.7.0; do
      mvn -q -B dependency:copy -Dartifact="$artifact" -DoutputDirectory="$dir/libs.part" </dev/null || true
    done
    mv "$dir/libs.part" "$dir/libs"
  fi
  while read -r script class; do
    printf '#!/bin/bash\nexec java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "/opt/kafka/libs/*" %s "$@"\n' "$class" >"$dir/bin/$script"
    chmod 755 "$dir/bin/$script"
  done <<'D'
kafka-topics.sh org.apache.kafka.tools.TopicCommand
kafka-storage.sh kafka.tools.StorageTool
D
  cat >"$dir/run" <<'D'
#!/bin/bash
set -e
properties=/tmp/server.properties
env | sed -n 's/^KAFKA_\([A-Z_]*\)=\(.*\)$/\1 \2/p' | while read -r name value; do
  case $name in OPTS|HEAP_OPTS) ;; *) echo "$(tr 'A-Z_' 'a-z.' <<<"$name")=$value" ;; esac
done >$properties
/opt/kafka/bin/kafka-storage.sh format --ignore-formatted -t "${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}" -c $properties
exec java ${KAFKA_HEAP_OPTS:--Xmx512m} -XX:+UseSerialGC -cp "/opt/kafka/libs/*" kafka.Kafka $properties
D
  chmod 755 "$dir/run"
fi
apt_image "$kafka" "Kafka's own jars on Debian's Java 17" openjdk-17-jre-headless <<'D'
RUN useradd -u 1000 -m appuser && mkdir -p /var/lib/kafka/data && chown appuser /var/lib/kafka/data
COPY libs /opt/kafka/libs
COPY bin /opt/kafka/bin
COPY run /etc/kafka/docker/run
USER appuser
VOLUME /var/lib/kafka/data
EXPOSE 9092
CMD ["/etc/kafka/docker/run"]
D

# --- distroless: glibc, libgcc, certificates, a user, no shell --------------------------------------------------------
mkdir -p "$work/distroless"
cat >"$work/distroless/Dockerfile" <<'D'
FROM daegi-test/apt AS packages
RUN apt-get update -qq && mkdir /d /image && cd /d \
 && apt-get download -qq libc6 libgcc-s1 libstdc++6 libgomp1 libssl3 base-files tzdata netbase ca-certificates >/dev/null 2>&1 \
 && for p in *.deb; do dpkg-deb -x "$p" /image; done \
 && rm -rf /image/usr/share/doc /image/usr/share/man /image/usr/share/locale \
 && mkdir -p /image/etc/ssl/certs /image/home/nonroot /image/tmp && chmod 1777 /image/tmp && chown 65532:65532 /image/home/nonroot \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && printf 'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' >/image/etc/passwd \
 && printf 'root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n' >/image/etc/group \
 && echo 'hosts: files dns' >/image/etc/nsswitch.conf
FROM scratch
COPY --from=packages /image /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
WORKDIR /home/nonroot
USER 65532
D
image "$(from distroless)" "$work/distroless" "the same Debian packages"

# --- rust: only a full build needs it. This machine's toolchain, which may be newer ----------------------------------
rust=$(from rust:)
if [ -n "${FULL:-}" ] && ! have "$rust" && ! { pulls && docker pull -q "$rust" >/dev/null; }; then
  dir=$work/rust; rm -rf "$dir"; mkdir -p "$dir"
  cp -a "$(rustc --print sysroot)" "$dir/toolchain"; rm -rf "$dir/toolchain/share" "$dir/toolchain/lib/rustlib/src"
  cp /etc/ssl/certs/ca-certificates.crt "$dir/ca.crt"
  cat >"$dir/Dockerfile" <<'D'
FROM daegi-test/apt
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates gcc libc6-dev >/dev/null && rm -rf /var/lib/apt/lists/*
COPY toolchain /usr/local
# The package above has replaced the certificates.
COPY ca.crt /etc/ssl/certs/ca-certificates.crt
ENV CARGO_HOME=/usr/local/cargo CARGO_NET_RETRY=5
D
  image "$rust" "$dir" "$(rustc --version)"
  rm -rf "$dir"
fi

docker images --filter "label=$label" --format '{{.Repository}}:{{.Tag}}' | grep -Ev '^(daegi-|<none>)' | sort -u | while read -r name; do
  say "STAND-IN for $name: $(docker inspect -f "{{index .Config.Labels \"$label\"}}" "$name")"
done
