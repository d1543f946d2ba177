//go:build !linux

package walkthrough

import "os/exec"

// dieWithParent does nothing: an operator whose API server is gone is harmless.
func dieWithParent(*exec.Cmd) {}
