// Package sim runs the whole server in one goroutine: the sessions of the Redis protocol, the loop,
// the machine, the store, its journal and tables, and recovery, on a simulated disk and a clock
// that only the simulation moves. A seed says all that happens. README.md says what may differ.
//
//	sim_test.go     what happens, one after the other
//	draw_test.go    which commands clients send
//	swarm_test.go   which of them, and of their options, a seed has
//	focus_test.go   themes of which some seeds do much more
//	grammar_test.go commands by their rows in the tables of words
//	words_test.go   words without a rule, and why
//	rules_test.go   what is drawn for shares, limits, rates and strict order
//	client_test.go  clients, and what they get
//	start_test.go   starts, and the ends of processes
//	offline_test.go commands for the folder, between two processes
//	manual_test.go  the examples of COMMANDS.md
//	damage_test.go  reads that fail, and bits that change
//	mutant_test.go  mutants, and the seeds that find them
//	seen_test.go    what is seen of a server: commands in their order, batches, what is swept
//	tail_test.go    what who tails a queue is told
//	wire_test.go    commands as bytes, and replies
//	small_test.go   clients of the small protocols, and what is seen of their sessions
//	pinpriq_test.go     requests of pinpriq
//	barbershop_test.go  lines of barbershop
package sim
