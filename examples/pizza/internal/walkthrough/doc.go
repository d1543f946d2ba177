// Package walkthrough walks through the restaurant's chapter on a real control
// plane, with the operator as a process of its own and with kubectl. The demo
// shows the steps, and the end-to-end test runs the same.
package walkthrough
