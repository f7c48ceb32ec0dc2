// Package connection is how commands reach a running server: the flags that say where it is, how
// the connection is encrypted and who the user is; and what errors say. The files, in layers:
//
//	login.go      flags for encryption and logins
//	dial.go       connections, and why there is none
//	operator.go   flags of those who speak to the operator's port
//	workqueue.go  flags of clients of the work queue
package connection
