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
log=$(mktemp)
trap 'rm -f "$log"' EXIT

targets=0 executions=0 failures=0
for module in $(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | xargs dirname | sort); do
	# Most modules have none, and would take long to compile.
	grep -rq --include='*_test.go' '^func Fuzz' "$module" || continue
	for package in $(go -C "$module" list ./...); do
		for target in $(go -C "$module" test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
			targets=$((targets + 1))
			echo "$package $target"
			# Minimizing what is merely interesting would take most of the time.
			if ! go -C "$module" test -run '^$' -fuzz "^$target\$" -fuzztime "$for_each" -fuzzminimizetime 1s "$package" >"$log" 2>&1; then
				# The engine reports its own end of time as an error, now and then (golang.org/issue/75804).
				if grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
					failures=$((failures + 1))
					cat "$log"
				fi
			fi
			n=$(grep -o 'execs: [0-9]*' "$log" | tail -1 | grep -o '[0-9]*' || true)
			executions=$((executions + ${n:-0}))
		done
	done
done
echo "fuzz: $targets targets, $executions executions, $failures failures"
[ "$failures" = 0 ]
