package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// A watchdog is a shell that outlives its parent, however that one ends, and
// then kills the processes and removes the directory. It waits on a pipe whose
// write end only the parent holds: the kernel closes that end when the parent
// dies, by SIGKILL too. (Linux' PDEATHSIG is not portable, follows the thread
// and not the process, and removes no directory.)
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// Each line of the pipe is the name of a process and its pid, or the name alone
// when the process has ended and the pid may soon be another's. A process that
// is dying may still create a file, so the removal tries twice.
const watchdogScript = `
while read -r name pid; do
	case $name in
	` + etcdName + `) etcd=$pid ;;
	` + apiserverName + `) apiserver=$pid ;;
	esac
done
for pid in $etcd $apiserver; do kill -KILL "$pid"; done
rm -rf -- "$1" || { sleep 1 && rm -rf -- "$1"; }
`

// launchScript announces its own pid and then becomes the named program. So the
// watchdog knows of each process before that can do anything, and no moment is
// left in which the parent's death leaves one behind.
const launchScript = `echo "$1 $$" >&3 && shift && exec "$@" 3>&-`

func newWatchdog(dir string) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "watchdog", dir)
	cmd.Dir = "/" // so that it holds no directory of the caller's
	cmd.Stdin = r
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &watchdog{cmd, w}, nil
}

// command returns a command that runs the program at path under the watchdog's
// eye. The name is etcdName or apiserverName.
func (w *watchdog) command(name, path string, args ...string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", append([]string{"-c", launchScript, "launch", name, path}, args...)...)
	cmd.ExtraFiles = []*os.File{w.pipe} // file descriptor 3
	cmd.SysProcAttr = ownGroup()
	return cmd
}

// forget says that the named process has ended. A watchdog that is gone has
// nothing to forget.
func (w *watchdog) forget(name string) { _, _ = fmt.Fprintln(w.pipe, name) }

// release makes the watchdog do its work, and returns when the directory is
// removed.
func (w *watchdog) release() error {
	return errors.Join(w.pipe.Close(), w.cmd.Wait())
}
