// Package crash puts load on a real server process, has it end at some moment or a call or its disk
// fail, starts it again on the same folder, and asks the model of the server what must be there.
//
//	server_test.go   the server process: start, kill, terminate, its log
//	link_test.go     a connection that speaks the Redis protocol
//	worker_test.go   a connection with names of its own, and the model of them
//	draw_test.go     its calls
//	trial_test.go    the cycles of start, load and end
//	crash_test.go    the binary, and kills at any moment
//	mount_test.go    file systems that are small, or have less room than they say
//	disk_linux_test.go            disks that are full, thin, or cut off
//	refusing_linux_test.go        disks that refuse some pages under a server
//	refusedcommand_linux_test.go  or under a command
//	sweep_test.go    system calls that fail
//	compact_test.go  compactions that are killed
//	mutant_test.go   servers with a planted bug, which must be found
//
// Each worker has names of its own, and a model of its own with them. So the model says each reply,
// whatever the others do. Only numbers of packets and claims are common: the model learns them from
// the replies, and none may be given twice. After an end the calls without a reply may have been
// done, in their order: one of the models after none, some or all of them must be what is there.
// Nothing that a worker does is due before the trial is over, so no reply depends on a clock.
package crash
