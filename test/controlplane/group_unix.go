//go:build unix

package controlplane

import "syscall"

// ownGroup puts a process into a process group of its own, so that Ctrl-C in the
// terminal reaches the caller alone, who then drains and calls Stop.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
