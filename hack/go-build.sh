#!/usr/bin/env bash
# Builds commands of the module in the working directory, and prints
# "compiled n of m packages": on a terminal in one line that is rewritten, elsewhere in a line for each
# tenth. If little is compiled, nothing is printed.
#
#	hack/go-build.sh folder 'linker flags' package...
set -euo pipefail
folder=$1 ldflags=$2
shift 2
mkdir -p "$folder"

report() {
	local line n=0 total=0 tenths=0 clear=""
	[ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && clear=$'\r\033[K'
	while IFS= read -r line; do
		# With -v, go build prints the path of each package that it compiles. Other lines are downloads and errors.
		if [[ ! $line =~ ^[A-Za-z0-9._~/-]+$ ]]; then
			printf '%s%s\n' "$clear" "$line"
			continue
		fi
		# To count first would take a second each time that there is nothing to compile.
		((n > 0)) || total=$(go list -deps -f '{{if .Stale}}stale{{end}}' "$@" | grep -c stale || true)
		((n += 1, total = n > total ? n : total))
		if [ -n "$clear" ]; then
			printf '%s%s' "$clear" "compiled $n of $total packages"
			((n < total)) || printf ', linking …'
		elif ((total >= 50 && n * 10 / total > tenths)); then
			((tenths = n * 10 / total))
			echo "compiled $n of $total packages after $SECONDS s"
		fi
	done
	((n == 0)) || printf '%s' "$clear"
}

go build -v -ldflags "$ldflags" -o "$folder/" "$@" 2>&1 | report "$@" >&2
