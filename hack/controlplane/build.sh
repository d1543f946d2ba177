#!/usr/bin/env bash
# Builds etcd, kube-apiserver and kubectl from the Go modules that a go.mod
# names, into the folder bin beside that:
#
#	hack/controlplane/build.sh            # the release that everything runs with
#	hack/controlplane/build.sh 1.33       # another, of the folder 1.33
#	hack/controlplane/build.sh . kubectl  # kubectl alone
#
# make runs it when they are missing or outdated.
set -euo pipefail
cd "$(dirname "$0")"
build=$(dirname "$PWD")/go-build.sh
cd "${1:-.}"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"

packages=(k8s.io/kubernetes/cmd/kubectl)
what="kubectl $version"
if [ "${2:-}" != kubectl ]; then
	packages+=(go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver)
	what+=", kube-apiserver $version and etcd $(go list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)"
fi
echo "Building $what from Go modules, which is done once …"

# What the release build of Kubernetes stamps in (hack/lib/version.sh).
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
done

# No flag but those of the linker: with -trimpath, or without cgo, the Go tests could not use the
# packages that are compiled here, and the release of this folder shares hundreds of them.
# A new folder, because go build reads only the beginning of a binary, and so leaves one that was cut
# off when an earlier build was killed.
mkdir -p bin
new=$(mktemp -d bin/new.XXXXXX)
trap 'rm -rf "$new"' EXIT
"$build" "$new" "$ldflags" "${packages[@]}"
[ ! -e "$new/server" ] || mv "$new/server" "$new/etcd"
mv -f "$new"/* bin
echo "built $what after $SECONDS s"
