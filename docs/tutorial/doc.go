// Package tutorial is the life of an API version, from v1alpha1 to v1, in eight steps.
//
// Read README.md, which leads through the folders step1 to step8. Each is the whole program
// after that step, with its tests. The tests here check that the text shows what is in the
// folders (-update writes it into the text), and play all steps in one cluster.
//
// The package holds no code.
package tutorial
