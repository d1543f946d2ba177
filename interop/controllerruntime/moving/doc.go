// Package moving takes one kind from controller-runtime's webhooks to crdkit, in steps, each
// of which is a program that works: docs/coming-from-controller-runtime.md tells the story.
// The tests of this package ask every step the same, and compare the answers.
package moving
