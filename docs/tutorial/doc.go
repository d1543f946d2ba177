// Package tutorial tests the tutorial in README.md, the life of an API version in eight steps.
//
// The patches step1.patch to step8.patch are the changes of the steps, from an empty folder on.
// Package library is the program after step 6, which serves both versions. In make verify, a test
// follows the page against a real kube-apiserver; -update writes what the commands print.
//
// To change a step, apply and commit each patch in an empty git repository, with the command rm of
// step 8. Change the commits with git rebase, and write each one with git diff -C, without the files
// that rm deletes. Copy the program after step 6 to library.
package tutorial
