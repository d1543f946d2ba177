// Package docs_test proves the pages of this folder: their Go code is compiled, their
// commands are run, what they cite exists, and what they say of the API server is watched on
// a real one.
package docs_test
