#!/usr/bin/env bash
# Runs every fuzz target of all modules for a while, one after another:
#
#	hack/fuzz.sh 60s
#
# The last line says how many there were, how many inputs they have tried, and how many
# have failed. The input of a failure is under the package's testdata/fuzz: commit it.
set -euo pipefail
cd "$(dirname "$0")/.."
for_each=${1:?how long for each target, such as 60s}
binaries=$PWD/bin/fuzz
cache=$(go env GOCACHE)/fuzz
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT # an interrupted target ends as if its time were up
mkdir -p "$binaries"

targets=0 executions=0 failures=0
while read -r folder; do
	package=$(go -C "$folder" list .)
	binary=$binaries/${package//\//-}.test
	# One build, instrumented, for all targets of a package.
	go -C "$folder" test -vet=off -c -fuzz . -o "$binary" .
	names=$(cd "$folder" && "$binary" -test.list '^Fuzz')
	for target in ${names:?the tests of $package list no fuzz target}; do
		targets=$((targets + 1))
		echo "$package $target"
		# Minimizing what is merely interesting would take most of the time.
		if ! (cd "$folder" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$for_each" \
			-test.fuzzminimizetime 100ms -test.fuzzcachedir "$cache/$package") >"$log" 2>&1; then
			# The engine reports its own end of time as an error, now and then (golang.org/issue/75804).
			if grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
				failures=$((failures + 1))
				cat "$log"
			fi
		fi
		n=$(grep -o 'execs: [0-9]*' "$log" | tail -1 | grep -o '[0-9]*' || true)
		executions=$((executions + ${n:-0}))
	done
done < <(git grep -l --untracked '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
echo "fuzz: $targets targets, $executions executions, $failures failures"
[ "$failures" = 0 ] && [ "$targets" -gt 0 ]
