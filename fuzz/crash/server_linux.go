package crash

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the server when the harness is gone, however that ended.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
