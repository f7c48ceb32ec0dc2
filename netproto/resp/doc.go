// Package resp serves the Redis protocol, RESP2 and RESP3, on the queues and the keyspace of a
// broker. A list is a queue. COMMANDS.md says what each command does here, netproto/words declares
// them, and the folder wire has the bytes of requests and replies. The files, in layers: few use
// what a file declares that is listed after them.
//
// A connection:
//
//	errors.go         the words of errors
//	args.go           what arguments say
//	reply.go          replies
//	server.go         Protocol: what its connections share
//	command.go        what a command is
//	channel.go        the channels that are the server's
//	rights.go         what a user may ask for
//	login.go          who the user is
//	look.go           looks at very much, in slices
//	session.go        one connection: requests are carried out in order
//	packet.go         packets as commands reply with them
//	audit.go          what users manage and operate is logged
//
// Commands that any Redis has:
//
//	pubsub.go         channels
//	event.go          what has happened, as channels tell it
//	transaction.go    MULTI, EXEC, WATCH
//	acl.go            ACL
//	client.go         CLIENT
//	connection.go     commands on the connection itself
//	info.go           INFO, and what the server is
//	config.go         CONFIG
//	syntax.go         arguments in the language of netproto/words
//	docs.go           what the words say of a command
//	scan.go           names and fields, bit by bit
//	introspection.go  COMMAND
//	pop.go            commands that take elements of lists, and those that wait for one
//	search.go         those that look for a value
//	list.go           all others on lists
//	incr.go           strings as numbers
//	string.go         commands on strings
//	object.go         what tools ask about a value's inside
//	key.go            commands on names of any type
//	hash.go           commands on hashes
//
// Commands of the work queue:
//
//	filter.go         options that choose packets by their tags
//	option.go         all others
//	setting.go        settings of queues
//	push.go           those that push
//	load.go           one packet as another server had it
//	claim.go          those that take, and end claims
//	inspect.go        those that look
//	manage.go         those for operators
//	work.go           the table of them
//
// All of them:
//
//	table.go          commands by their names
package resp
