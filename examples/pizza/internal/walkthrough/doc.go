// Package walkthrough demonstrates the pizza restaurant on an API server, with the operator as a
// separate process and with kubectl. The server is a real control plane, or package apiservertest in this
// process. The demos and the end-to-end test run the same steps.
package walkthrough
