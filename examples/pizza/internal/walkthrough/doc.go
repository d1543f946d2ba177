// Package walkthrough demonstrates the pizza restaurant on a real control plane, with the operator
// as a separate process and with kubectl. The demo and the end-to-end test run the same steps.
package walkthrough
