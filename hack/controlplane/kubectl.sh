#!/usr/bin/env bash
# Prints the path of a kubectl for the demo on the embedded API server: that of KUBEBUILDER_ASSETS,
# the one that build.sh has built, or the one in PATH, whichever is found first. If there is none of
# a supported version, build.sh builds it, without etcd and kube-apiserver.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Supported are the releases with which `make test-matrix` runs the same steps, and the one after
# them, because kubectl may be one minor version newer than the API server (Kubernetes' version skew policy).
newest=$(sed -n 's|.*k8s.io/kubernetes v1\.\([0-9]*\)\..*|\1|p' "$here/go.mod")
oldest=$newest
for module in "$here"/1.*/go.mod; do
	minor=$(basename "$(dirname "$module")")
	minor=${minor#1.}
	((oldest = minor < oldest ? minor : oldest))
done

supported() {
	local version minor
	version=$("$1" version --client 2>/dev/null) || return 1
	minor=$(sed -n 's/^Client Version: v1\.\([0-9]*\)\..*/\1/p' <<<"$version")
	[[ -n $minor ]] && ((minor >= oldest && minor <= newest + 1))
}

for kubectl in "${KUBEBUILDER_ASSETS:-$here/bin}/kubectl" "$(command -v kubectl || true)"; do
	if [ -x "$kubectl" ] && supported "$kubectl"; then
		echo "$kubectl"
		exit
	fi
done
"$here/build.sh" . kubectl >&2
echo "$here/bin/kubectl"
