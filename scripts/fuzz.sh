#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 20s); go test fuzzes only one at a time. A failure leaves its input in
# the package's testdata/fuzz, where every later test run tries it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

while IFS=: read -r file target; do
  package=./$(dirname "$file")
  echo "$package $target"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "$package" </dev/null
done < <(git ls-files --cached --others --exclude-standard -- '*_test.go' |
  xargs grep -oE '^func Fuzz[A-Za-z0-9_]*' /dev/null | sed 's/func //' | sort)
