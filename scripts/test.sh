#!/usr/bin/env bash
# All tests: everything in memory and on the broker inside the process, then the end-to-end suite once more on a real
# Kafka, where this machine can run one. The broker is stopped however this ends. The last lines are go test's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
cleanup() {
  scripts/kafka.sh stop "$work/kafka" || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Kafka starts first, so that a machine without one says so above the results and not below them.
brokers='' started=0 result=0
brokers=$(scripts/kafka.sh start "$work/kafka" 0 2>"$work/kafka.err") || started=$?
case $started in
0) echo "real Kafka: $brokers" ;;
3) echo "real Kafka: SKIPPED, the end-to-end suite runs on the broker inside the process only. $(tail -n 1 "$work/kafka.err")" ;;
*)
  cat "$work/kafka.err" >&2
  echo "real Kafka: FAILED to start although the machine has what it needs; the other tests run, the exit code is 1"
  brokers='' result=1
  ;;
esac

env -u MILLRACE_TEST_BROKERS go test -timeout 10m ./... || result=$?
if [[ -n $brokers ]]; then
  echo "end-to-end suite on real Kafka $brokers:"
  MILLRACE_TEST_BROKERS=$brokers go test -count=1 -timeout 10m ./e2e/... || result=$?
fi
exit "$result"
