package show

import (
	"os/exec"
	"syscall"
)

// dieWithParent keeps a process from outliving a demo that is killed. It has a process group
// of its own, so that an interrupt at the terminal reaches it only through the demo, in order.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
