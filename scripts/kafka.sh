#!/usr/bin/env bash
# A real Apache Kafka broker for tests: one node, KRaft, broker and controller in one process. Before 3.3 there is no KRaft
# that is ready for use: such a broker has a ZooKeeper beside it.
#
#   kafka.sh start DIR [PORT]   start it, wait until it answers, print its host:port
#   kafka.sh stop DIR           stop it; what it stored stays in DIR, a later start goes on there
#
# PORT 0 takes a free port (default 9092); the next port is the controller's or ZooKeeper's. Only the address goes to stdout.
#   MILLRACE_KAFKA_VERSION=2.5.1      this version instead of 4.4.0, from Maven (or, from 3.7 on, docker)
#   MILLRACE_KAFKA_PROPERTIES=FILE    more lines for the broker's server.properties; they win over this script's own
# The first of these that the machine has is used:
#   MILLRACE_KAFKA=host:port    a broker that runs already; it is never stopped by this script
#   KAFKA_HOME=/path            an unpacked Kafka 4 distribution, with a JDK 17 or newer; not if a version is asked for
#   java 17+ and mvn            jars by scripts/kafka/pom.xml, in Maven's own repository
#   docker                      the image apache/kafka, when an engine answers
# Exit codes: 0 it answers, 1 it was started but does not answer, 2 wrong usage, 3 this machine cannot run Kafka.
set -euo pipefail

readonly version=${MILLRACE_KAFKA_VERSION:-4.4.0}
readonly heap=${MILLRACE_KAFKA_HEAP:-768m}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "kafka.sh: $*" >&2; }

usage() {
  sed -n '2,17p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2
  exit 2
}

# answers HOST PORT: a broker that is ready answers ApiVersions; an open port alone says too little.
answers() {
  local reply
  reply=$(
    exec 2>/dev/null # A refused connection is an answer here, not news.
    exec 3<>"/dev/tcp/$1/$2" || exit 1
    printf '\0\0\0\012\0\022\0\0\0\0\0\001\377\377' >&3
    timeout 3 head -c 8 <&3 | od -An -tx1 | tr -d ' \n'
  ) || return 1
  [[ ${reply:8:8} == 00000001 ]]
}

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_port prints a port that is free together with the one after it, below the range that outgoing connections use.
free_port() {
  local candidate
  for _ in $(seq 200); do
    candidate=$((20000 + RANDOM % 12000))
    if port_is_free "$candidate" && port_is_free $((candidate + 1)); then
      echo "$candidate"
      return
    fi
  done
  say "no free port found between 20000 and 32000"
  exit 1
}

java_is_new_enough() {
  command -v java >/dev/null || return 1
  local major
  major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [[ ${major:-0} -ge 17 ]]
}

needs_zookeeper() { [[ $version =~ ^(2\.|3\.[0-2]\.) ]]; }

# roles PORT BIND: the settings that differ between KRaft and ZooKeeper.
roles() {
  if needs_zookeeper; then
    cat <<P
broker.id=1
zookeeper.connect=127.0.0.1:$(($1 + 1))
listeners=PLAINTEXT://$2:$1
P
    return
  fi
  cat <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$(($1 + 1))
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$2:$1,CONTROLLER://$2:$(($1 + 1))
P
}

# properties DIR PORT BIND: the settings that let one node be a whole cluster, and let tests end groups quickly.
properties() {
  roles "$2" "$3"
  cat <<P
advertised.listeners=PLAINTEXT://127.0.0.1:$2
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=8
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.retention.ms=-1
auto.create.topics.enable=false
P
  [[ -z ${MILLRACE_KAFKA_PROPERTIES:-} ]] || cat "$MILLRACE_KAFKA_PROPERTIES"
}

new_cluster_id() { head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '='; }

# await DIR PORT: waits for the answer, and gives up early when the process has ended.
await() {
  local deadline=$((SECONDS + 90))
  while ((SECONDS < deadline)); do
    if answers 127.0.0.1 "$2"; then
      echo "127.0.0.1:$2"
      exit 0
    fi
    if [[ -s $1/pid ]] && ! kill -0 "$(cat "$1/pid")" 2>/dev/null; then
      break
    fi
    sleep 0.3
  done
  say "Kafka does not answer on 127.0.0.1:$2; the end of $1/broker.log:"
  tail -n 20 "$1/broker.log" >&2 || true
  stop "$1"
  exit 1
}

start_from_home() { # DIR PORT
  properties "$1/data" "$2" 127.0.0.1 >"$1/server.properties"
  export LOG_DIR="$1/logs" KAFKA_HEAP_OPTS="-Xmx$heap"
  if [[ ! -e $1/data/meta.properties ]]; then
    "$KAFKA_HOME/bin/kafka-storage.sh" format -t "$(new_cluster_id)" -c "$1/server.properties" >"$1/format.log" 2>&1
  fi
  setsid "$KAFKA_HOME/bin/kafka-server-start.sh" "$1/server.properties" >"$1/broker.log" 2>&1 </dev/null &
  echo $! >"$1/pid"
}

# maven_classpath prints where the class path is kept, after asking Maven for the jars when one of them is missing.
maven_classpath() {
  local cache file
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/millrace
  file=$cache/kafka-$version.classpath
  if [[ ! -s $file || ! -e $(cut -d: -f1 "$file") ]]; then
    mkdir -p "$cache"
    say "fetching Kafka $version with Maven (once)"
    timeout 600 mvn -q -B -Dstyle.color=never -f "$here/kafka/pom.xml" "-Dkafka.version=$version" dependency:build-classpath \
      -Dmdep.outputFile="$file.$$" >&2 </dev/null || return 1
    mv "$file.$$" "$file"
  fi
  echo "$file"
}

# start_zookeeper DIR PORT CLASSPATH_FILE: the broker retries until it answers.
start_zookeeper() {
  cat >"$1/zookeeper.properties" <<P
dataDir=$1/zookeeper
clientPort=$2
clientPortAddress=127.0.0.1
admin.enableServer=false
P
  setsid java -Xmx128m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$(cat "$3")" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain "$1/zookeeper.properties" >"$1/zookeeper.log" 2>&1 </dev/null &
  echo $! >"$1/zookeeper.pid"
}

start_from_maven() { # DIR PORT CLASSPATH_FILE
  local java=(java "-Xmx$heap" -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$(cat "$3")")
  properties "$1/data" "$2" 127.0.0.1 >"$1/server.properties"
  if needs_zookeeper; then
    start_zookeeper "$1" $(($2 + 1)) "$3"
  elif [[ ! -e $1/data/meta.properties ]]; then
    "${java[@]}" kafka.tools.StorageTool format -t "$(new_cluster_id)" -c "$1/server.properties" >"$1/format.log" 2>&1
  fi
  setsid "${java[@]}" kafka.Kafka "$1/server.properties" >"$1/broker.log" 2>&1 </dev/null &
  echo $! >"$1/pid"
}

start_from_docker() { # DIR PORT
  local arguments=() line name
  if [[ -s $1/container ]] && docker start "$(cat "$1/container")" >/dev/null 2>&1; then
    return
  fi
  while IFS= read -r line; do
    name=${line%%=*}
    name=${name^^}
    arguments+=(-e "KAFKA_${name//./_}=${line#*=}")
  done < <(properties /var/lib/kafka/data "$2" 0.0.0.0)
  docker run -d -p "127.0.0.1:$2:$2" "${arguments[@]}" "apache/kafka:$version" >"$1/container" 2>"$1/broker.log"
}

start() { # DIR PORT
  local dir port=$2 reasons=() classpath
  if [[ -n ${MILLRACE_KAFKA:-} ]]; then
    if answers "${MILLRACE_KAFKA%:*}" "${MILLRACE_KAFKA##*:}"; then
      echo "$MILLRACE_KAFKA"
      exit 0
    fi
    say "MILLRACE_KAFKA=$MILLRACE_KAFKA does not answer; start that broker or unset the variable"
    exit 1
  fi
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  if is_running "$dir/pid" "$dir/server.properties"; then
    say "a broker of $dir runs already (pid $(cat "$dir/pid")); stop it first"
    exit 1
  fi
  [[ $port != 0 ]] || port=$(free_port)
  if ! port_is_free "$port" || ! port_is_free $((port + 1)); then
    say "port $port or $((port + 1)) is taken; choose another PORT, or 0 for a free one"
    exit 1
  fi
  if [[ -z ${MILLRACE_KAFKA_VERSION:-} && -n ${KAFKA_HOME:-} && -x $KAFKA_HOME/bin/kafka-server-start.sh ]] && java_is_new_enough; then
    start_from_home "$dir" "$port"
    await "$dir" "$port"
  fi
  reasons+=("no KAFKA_HOME with a JDK 17 or newer")
  if ! java_is_new_enough || ! command -v mvn >/dev/null; then
    reasons+=("no JDK 17 or newer with mvn")
  elif ! classpath=$(maven_classpath); then
    reasons+=("Maven could not fetch Kafka's jars")
  else
    start_from_maven "$dir" "$port" "$classpath"
    await "$dir" "$port"
  fi
  if needs_zookeeper; then
    reasons+=("there is no image of Kafka $version")
  elif command -v docker >/dev/null && timeout 10 docker info >/dev/null 2>&1; then
    if start_from_docker "$dir" "$port"; then
      await "$dir" "$port"
    fi
    reasons+=("docker could not start apache/kafka:$version")
  else
    reasons+=("no docker engine answers")
  fi
  say "no way to run Kafka here:$(printf ' %s;' "${reasons[@]}") MILLRACE_KAFKA=host:port names a running one"
  exit 3
}

# is_running PIDFILE FILE: the number in the pid file may meanwhile belong to a stranger, so FILE must be on the command line.
is_running() {
  [[ -s $1 ]] && ps -ww -p "$(cat "$1")" -o args= 2>/dev/null | grep -qF "$2"
}

# end PIDFILE FILE: ends the process, in the orderly way if it does so within 20 s.
end() {
  if is_running "$1" "$2"; then
    kill "$(cat "$1")"
    for _ in $(seq 100); do
      is_running "$1" "$2" || break
      sleep 0.2
    done
    if is_running "$1" "$2"; then
      say "it did not stop within 20 s and is killed"
      kill -9 "$(cat "$1")"
    fi
  fi
  rm -f "$1"
}

stop() { # DIR
  local dir
  dir=$(cd "$1" 2>/dev/null && pwd) || return 0
  if [[ -s $dir/container ]]; then
    docker stop "$(cat "$dir/container")" >/dev/null 2>&1 || true
  fi
  end "$dir/pid" "$dir/server.properties"
  end "$dir/zookeeper.pid" "$dir/zookeeper.properties" # the broker says goodbye to it
}

case ${1:-} in
start) [[ -n ${2:-} ]] || usage; start "$2" "${3:-9092}" ;;
stop) [[ -n ${2:-} ]] || usage; stop "$2" ;;
*) usage ;;
esac
