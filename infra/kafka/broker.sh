#!/usr/bin/env bash
# Runs real Apache Kafka on the loopback interface, for developers (`make kafka`) and for tests (daegi_testkit::Kafka).
# It prints one line `DAEGI_KAFKA=host:port[,…]` when all topics can be written, and stays until it is stopped.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: infra/kafka/broker.sh [options]
  --brokers N     1 (default) or 3
  --partitions N  partitions of each topic (default 4)
  --port N        port of the first broker, the others follow it (default: free ones)
  --data DIR      where data and logs live (default: a temporary directory)
  --keep          leave the data there at the end; the next start with the same --data goes on with it
  --secured DIR   also listen with TLS, on one port with SASL and on one with client certificates; prints DAEGI_KAFKA_SASL and
                  DAEGI_KAFKA_MUTUAL. DIR has ca.pem, server.pem (key and certificate), and password, of the user daegi; it is removed
                  at the end. One broker only
  --stdin         obey stdin: a line `kill` ends the brokers like a power cut, its end stops them cleanly
  --fetch         only fetch the jars
Further options for the JVM come from KAFKA_OPTS.
Exit codes: 0 stopped, 1 failed, 64 bad usage, 69 Java or Maven is missing, 75 a port was taken.
TEXT
}

readonly TOPICS=(item.changed:compact order.closed token.activated token.closed line.opened:compact line.closed control.changed:compact item.changed.dlq order.closed.dlq)
readonly START_DEADLINE_S=120 STOP_DEADLINE_S=15

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(cd "$here/../.." && pwd)/target/kafka
jars=$cache/jars-$(cat "$here/pom.xml" "$here/Broker.java" | cksum | cut -d ' ' -f 1)

brokers=1 partitions=4 port='' data='' keep=false stdin=false fetch=false
own_data=false watcher='' pids=() secured='' sasl='' mutual=''

fail() { # code, message
  echo "kafka: $2" >&2
  exit "$1"
}

number() { # option, value
  [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || fail 64 "$1 needs a number"
  echo "$2"
}

parse() {
  while [ $# -gt 0 ]; do
    case $1 in
      --brokers) brokers=$(number "$@"); shift ;;
      --partitions) partitions=$(number "$@"); shift ;;
      --port) port=$(number "$@"); shift ;;
      --data)
        [ -n "${2:-}" ] || fail 64 "--data needs a directory"
        data=$2; shift ;;
      --secured)
        [ -s "${2:-}/password" ] || fail 64 "--secured needs a directory with certificates and a password"
        secured=$2; shift ;;
      --keep) keep=true ;;
      --stdin) stdin=true ;;
      --fetch) fetch=true ;;
      --help) usage && exit 0 ;;
      *) usage >&2 && exit 64 ;;
    esac
    shift
  done
  [ "$brokers" = 1 ] || [ "$brokers" = 3 ] || fail 64 "--brokers is 1 or 3"
  [ -z "$secured" ] || [ "$brokers" = 1 ] || fail 64 "--secured is for one broker"
}

# --- The jars -----------------------------------------------------------------------------------------------------

need_tools() {
  java -version >/dev/null 2>&1 || fail 69 "JAVA IS MISSING: a JDK of version 17 or newer is needed to run Kafka"
  [ -d "$jars" ] && return
  javac --release 17 -version >/dev/null 2>&1 || fail 69 "THE JDK IS MISSING OR TOO OLD: javac of version 17 or newer is needed once"
  command -v mvn >/dev/null || fail 69 "MAVEN IS MISSING: mvn is needed once, to fetch Kafka's jars"
}

# Test binaries start at the same time: one of them fetches, the others wait for it. The directory gets its name when
# it is complete, so an interrupted fetch leaves nothing that looks finished.
fetch_jars() {
  [ -d "$jars" ] && return
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  if command -v flock >/dev/null; then flock 9; fi
  if [ ! -d "$jars" ]; then
    echo "kafka: fetching the jars, once" >&2
    local incoming
    incoming=$(mktemp -d "$cache/incoming.XXXXXX")
    if mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$incoming" </dev/null >&2 &&
      javac --release 17 -cp "$incoming/*" -d "$incoming" "$here/Broker.java" >&2; then
      mv "$incoming" "$jars"
    else
      rm -rf "$incoming"
      fail 1 "the jars could not be fetched"
    fi
  fi
  exec 9>&-
}

# --- The brokers --------------------------------------------------------------------------------------------------

# Between the ports that daegi's tests take and those that the kernel gives to outgoing connections.
free_port() {
  local candidate
  while true; do
    candidate=$((31000 + RANDOM % 1760))
    case " $* " in *" $candidate "*) continue ;; esac
    (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null || break
  done
  echo "$candidate"
}

choose_ports() {
  local id
  ports=() controllers=()
  for ((id = 0; id < brokers; id++)); do
    ports+=("${port:+$((port + id))}")
    [ -n "$port" ] || ports[id]=$(free_port "${ports[@]}")
  done
  for ((id = 0; id < brokers; id++)); do
    controllers+=("$(free_port "${ports[@]}" ${controllers[@]+"${controllers[@]}"})")
  done
  [ -z "$secured" ] || sasl=$(free_port "${ports[@]}" "${controllers[@]}")
  [ -z "$secured" ] || mutual=$(free_port "${ports[@]}" "${controllers[@]}" "$sasl")
}

choose_data() {
  if [ -z "$data" ]; then
    data=$(mktemp -d "${TMPDIR:-/tmp}/daegi-kafka.XXXXXX")
    own_data=true
  fi
  mkdir -p "$data"
  data=$(cd "$data" && pwd)
  # All nodes of a cluster share one id, of 16 bytes in base64.
  [ -s "$data/cluster-id" ] || head -c 16 /dev/urandom | base64 | tr '+/' 'ab' | tr -d '=' >"$data/cluster-id"
}

voters() {
  local id list=''
  for ((id = 0; id < brokers; id++)); do
    list+=${list:+,}$((id + 1))@127.0.0.1:${controllers[id]}
  done
  echo "$list"
}

properties() { # index of the broker
  cat <<TEXT
process.roles=broker,controller
node.id=$(($1 + 1))
controller.quorum.voters=$(voters)
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:${ports[$1]},CONTROLLER://127.0.0.1:${controllers[$1]}${secured:+,SASL://127.0.0.1:$sasl,MUTUAL://127.0.0.1:$mutual}
log.dirs=$data/broker-$(($1 + 1))
auto.create.topics.enable=false
default.replication.factor=$brokers
min.insync.replicas=$((brokers / 2 + 1))
offsets.topic.replication.factor=$brokers
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=$brokers
transaction.state.log.min.isr=$((brokers / 2 + 1))
transaction.state.log.num.partitions=4
# Small: one broker lives beside a whole test suite.
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
# Fast: a group forms without a delay, a test may choose a short session, and a dead broker is detected soon.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
# With a controlled shutdown a broker can restart immediately. If three stop together, the last ones would wait for a quorum that
# does not exist any more.
controlled.shutdown.enable=$([ "$brokers" = 1 ] && echo true || echo false)
TEXT
  [ -z "$secured" ] || secured_properties
}

secured_properties() {
  local modules=org.apache.kafka.common.security
  cat <<TEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,MUTUAL:SSL
ssl.keystore.type=PEM
ssl.keystore.location=$secured/server.pem
ssl.truststore.type=PEM
ssl.truststore.location=$secured/ca.pem
listener.name.mutual.ssl.client.auth=required
listener.name.sasl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER
listener.name.sasl.plain.sasl.jaas.config=$modules.plain.PlainLoginModule required user_daegi="$(cat "$secured/password")";
listener.name.sasl.scram-sha-512.sasl.jaas.config=$modules.scram.ScramLoginModule required;
# Accepts tokens without a signature.
listener.name.sasl.oauthbearer.sasl.jaas.config=$modules.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
TEXT
}

# Passwords of SCRAM are part of the first format of the storage.
format_secured() { # index of the broker
  java -Xmx64m -XX:TieredStopAtLevel=1 -cp "$jars:$jars/*" kafka.tools.StorageTool format --ignore-formatted \
    --cluster-id "$(cat "$data/cluster-id")" --config "$data/broker-$(($1 + 1)).properties" \
    --add-scram "SCRAM-SHA-512=[name=daegi,password=$(cat "$secured/password")]" </dev/null >"$data/format.log" 2>&1 3<&- ||
    { tail -n 20 "$data/format.log" >&2 && fail 1 "the storage could not be formatted"; }
}

launch() { # index of the broker
  local name=broker-$(($1 + 1))
  properties "$1" >"$data/$name.properties"
  rm -f "$data/$name.ready"
  [ -z "$secured" ] || format_secured "$1"
  # Without the second compiler a start takes half the time. On a machine of its own: KAFKA_OPTS=-XX:TieredStopAtLevel=4.
  # shellcheck disable=SC2086 # KAFKA_OPTS is a list
  java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
    -Dorg.slf4j.simpleLogger.showDateTime=true \
    -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS \
    -Dorg.slf4j.simpleLogger.showShortLogName=true \
    -Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn \
    -Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.admin=warn \
    ${KAFKA_OPTS:-} -cp "$jars:$jars/*" Broker "$data/$name.properties" "$(cat "$data/cluster-id")" "$data/$name.ready" \
    "${ports[$1]}" "$brokers" "$partitions" "${TOPICS[@]}" </dev/null >"$data/$name.log" 2>&1 3<&- &
  pids+=($!)
}

await_ready() { # index of the broker
  local log=$data/broker-$(($1 + 1)).log
  until [ -e "$data/broker-$(($1 + 1)).ready" ]; do
    if ! kill -0 "${pids[$1]}" 2>/dev/null; then
      grep -q 'Address already in use' "$log" && fail 75 "a port was taken (${ports[$1]} or ${controllers[$1]})"
      tail -n 20 "$log" >&2
      fail 1 "the broker exited during its start"
    fi
    [ "$SECONDS" -lt "$deadline" ] || { tail -n 20 "$log" >&2 && fail 1 "not ready within $START_DEADLINE_S s"; }
    sleep 0.05
  done
}

# --- The end ------------------------------------------------------------------------------------------------------

signal() { # name of the signal
  local pid
  for pid in ${pids[@]+"${pids[@]}"}; do
    kill -"$1" "$pid" 2>/dev/null || true
  done
}

await_end() {
  local pid
  for pid in ${pids[@]+"${pids[@]}"}; do
    wait "$pid" 2>/dev/null || true
  done
}

clean_up() {
  local code=$?
  trap '' INT TERM HUP USR1
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  signal TERM
  local deadline=$((SECONDS + STOP_DEADLINE_S)) pid
  for pid in ${pids[@]+"${pids[@]}"}; do
    while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.02; done
  done
  signal KILL
  await_end
  [ -z "$secured" ] || rm -rf "$secured"
  [ "$keep" = false ] && [ -n "$data" ] || return 0
  rm -rf "$data"/broker-[123] "$data"/broker-[123].{properties,ready} "$data"/{cluster-id,format.log}
  # After a failure the logs are kept for diagnosis.
  [ "$code" = 1 ] || rm -f "$data"/broker-[123].log
  [ "$own_data" = false ] || rmdir "$data" 2>/dev/null || true
}

obey() {
  local order
  while read -r order; do
    [ "$order" != kill ] || kill -USR1 $$
  done
  kill -TERM $$
}

# --- Main ---------------------------------------------------------------------------------------------------------

parse "$@"
need_tools
fetch_jars
[ "$fetch" = false ] || exit 0

trap clean_up EXIT
trap 'exit 0' INT TERM HUP
trap 'signal KILL; await_end; exit 0' USR1
if [ "$stdin" = true ]; then
  exec 3<&0
  obey <&3 &
  watcher=$!
fi

choose_data
choose_ports
deadline=$((SECONDS + START_DEADLINE_S))
for ((id = 0; id < brokers; id++)); do launch "$id"; done
for ((id = 0; id < brokers; id++)); do await_ready "$id"; done

bootstrap=$(printf ',127.0.0.1:%s' "${ports[@]}")
if [ -n "$secured" ]; then
  echo "DAEGI_KAFKA_SASL=127.0.0.1:$sasl"
  echo "DAEGI_KAFKA_MUTUAL=127.0.0.1:$mutual"
fi
echo "DAEGI_KAFKA=${bootstrap#,}"
if [ "$stdin" = false ]; then
  cat >&2 <<TEXT

  Kafka runs with the topics ${TOPICS[*]%:compact}.
  In another terminal:
    DAEGI_KAFKA=${bootstrap#,} cargo run --release
    kcat -b ${bootstrap#,} -t token.activated -C
  Logs: $data/broker-*.log    Ctrl-C stops it$([ "$keep" = true ] || echo " and removes its data").
TEXT
fi

await_end
fail 1 "all brokers exited unexpectedly, see $data/broker-*.log"
