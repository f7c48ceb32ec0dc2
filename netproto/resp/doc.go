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
//	cell.go           what clients of Sentinel are told
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
// Commands that any Redis has, each beside the file that carries it out:
//
//	pubsub.go         channels: SUBSCRIBE, UNSUBSCRIBE, PSUBSCRIBE, PUNSUBSCRIBE, PUBLISH, PUBSUB
//	event.go          what has happened, as channels tell it
//	transaction.go    MULTI, EXEC, DISCARD, WATCH, UNWATCH
//	acl.go            ACL
//	client.go         CLIENT
//	connection.go     HELLO, AUTH, PING, ECHO, SELECT, TIME, RESET, QUIT
//	info.go           INFO, ROLE, DBSIZE
//	config.go         CONFIG
//	syntax.go         arguments in the language of netproto/words
//	docs.go           what the words say of a command
//	scan.go           names and fields, bit by bit: KEYS, SCAN, HSCAN
//	introspection.go  COMMAND
//	pop.go            from the ends of lists: LPOP, RPOP, LMPOP, LMOVE, RPOPLPUSH, and those that
//	                  wait: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH
//	search.go         those that look for a value: LINSERT, LPOS, LREM
//	list.go           LPUSH, RPUSH, LPUSHX, RPUSHX, LLEN, LRANGE, LINDEX, LSET, LTRIM
//	incr.go           strings as numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT
//	string.go         GET, SET, MGET, MSET, MSETNX, SETNX, SETEX, PSETEX, GETSET, GETDEL, GETEX,
//	                  STRLEN, APPEND, GETRANGE, SUBSTR, SETRANGE
//	object.go         what tools ask about a value's inside: OBJECT, MEMORY
//	key.go            names of any type: DEL, UNLINK, EXISTS, TOUCH, TYPE, RENAME, RENAMENX, PERSIST,
//	                  EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, TTL, PTTL, EXPIRETIME, PEXPIRETIME,
//	                  FLUSHDB, FLUSHALL
//	hash.go           HGET, HSET, HMGET, HMSET, HSETNX, HDEL, HEXISTS, HGETALL, HKEYS, HVALS, HLEN,
//	                  HSTRLEN, HINCRBY, HINCRBYFLOAT
//
// Commands of the work queue:
//
//	filter.go         options that choose packets by their tags
//	option.go         all others
//	setting.go        settings of queues and of their shares: QSET, QPAUSE, QSHARE, QGET
//	push.go           QPUSH, QMPUSH
//	load.go           one packet as another server had it: QLOAD
//	claim.go          those that take, and end claims: QPOP, QCLAIM, QACK, QNACK, QEXTEND, QPROGRESS
//	inspect.go        those that look: QPEEK, QLIST, QSHOW, QLEN, QSTAT, QUEUES, QCONSUMERS,
//	                  QSHARES, QPRODUCERS
//	manage.go         those for operators: QDEL, QCANCEL, QMOVE, QPRIO, QRUN, QPURGE, QHARVEST, QREDRIVE,
//	                  QCLOSE, QDROP
//	work.go           the table of them
//
// All of them:
//
//	table.go          commands by their names
//	sentinel.go       what clients of Redis Sentinel send, in a table of its own
package resp
