//go:build !linux

package main

// yield lets others have the processors first, where the system can tell threads apart.
func yield() {}
