package ask

import "syscall"

// ofItsOwn gives a command a group of its own: Ctrl-C in a terminal ends this program's claims, not
// the commands. The end of this program does, as others get the packets then.
func ofItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
