//go:build !unix

package controlplane

import "syscall"

// ownGroup is here so that the package compiles; without /bin/sh no control
// plane starts.
func ownGroup() *syscall.SysProcAttr { return nil }
