#!/usr/bin/env bash
# Checks that the modules work for importers once a release is tagged:
#
#	hack/release-check.sh v0.1.0
#
# It tags the current commit in a clone and resolves the modules from there as an importer does:
# without the replace directives of the nested modules. It compiles nothing, because the tests do.
# Nothing is published, and the module cache of the user stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?which version, such as v0.1.0}
module=$(go list -m)
work=$(mktemp -d)
clone=$work/clone importer=$work/importer log=$work/log
trap '[ $? = 0 ] || cat "$log" >&2; rm -rf "$work"' EXIT
mkdir "$importer"
: >"$log"

git clone --quiet --no-local --no-tags . "$clone"
for tag in "$version" "interop/controllerruntime/$version"; do
	git -C "$clone" -c tag.gpgSign=false tag "$tag"
done

# The clone stands in for the repository; all other modules come from the cache, or from the proxy.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$clone.insteadOf" GIT_CONFIG_VALUE_0="https://$module"
GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
export GOPROXY GOPRIVATE=$module GOWORK=off GOFLAGS=-modcacherw GOMODCACHE=$work/mod GOBIN=$work/bin

cd "$importer"
cat >main.go <<PROGRAM
package main

import (
	_ "$module/webhook/replica"
	_ "$module/interop/controllerruntime"
)

func main() {}
PROGRAM
go mod init example.com/importer 2>>"$log"
# The checksums are those of the repository, so that nobody must be asked for them.
cat "$clone/go.sum" "$clone/interop/controllerruntime/go.sum" >go.sum
# The nested module selects the version of the main one.
go get "$module/interop/controllerruntime@$version" 2>>"$log"
selected=$(go list -m -f '{{.Version}}' "$module")
if [ "$selected" != "$version" ]; then
	echo "interop/controllerruntime requires $module $selected, and not $version" >&2
	exit 1
fi
go mod tidy 2>>"$log"
go build -n . 2>>"$log"
go install -n "$module/cmd/crdcheck@$version" 2>>"$log" # refuses a module with replace directives
echo "release: $module $version and its nested module work for an importer"
