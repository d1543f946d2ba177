// Package tutorial tests the tutorial in README.md, the life of an API version in eight steps.
//
// The patches step1.patch to step8.patch are the changes of the steps, from an empty folder on.
// Package library is the program after step 6, which serves both versions.
//
// To change a step, apply each patch in an empty git repository and commit it. Change the commits
// with git rebase, write each one with git diff -C, and copy the program after step 6 to library.
package tutorial
