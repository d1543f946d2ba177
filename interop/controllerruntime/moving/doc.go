// Package moving takes one kind from controller-runtime's webhooks to crdkit, in steps, each of which is
// a program that works, as docs/coming-from-controller-runtime.md describes; and back, as docs/leaving.md
// describes. The tests of this package ask every step the same, and compare the answers.
//
// Package lossy has conversion methods that forget a field, with the test that finds it. Package leave is
// the operator on its way back.
package moving
