//go:build !linux

package ask

import "syscall"

// ofItsOwn gives a command a group of its own. It outlives this program if that is killed.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
