package words

import "strings"

// Group is the commands of one section of COMMANDS.md.
type Group struct {
	Name     string // Redis's word for it
	Section  string
	Commands []Command
}

// Command is a command of the Redis protocol, as users write it.
type Command struct {
	Name string // in capitals, that of a subcommand behind its container's
	// Arguments are what follows. A word in capitals is a token, and belongs to the values behind it,
	// which are in lower case. What is in [] may be missing. | divides alternatives, and … repeats
	// what is before it. A | outside of [] divides whole forms of the command.
	Arguments string
	Reply     string
	Remarks   string // where it differs from Redis, or what else is to be known
}

// Forms returns the command with each form of its arguments.
func (c *Command) Forms() (forms []string) {
	for _, arguments := range divide(c.Arguments) {
		forms = append(forms, strings.TrimSpace(c.Name+" "+arguments))
	}
	return forms
}

// divide divides arguments at each " | " that is outside of [].
func divide(arguments string) (parts []string) {
	depth, from := 0, 0
	for i, c := range arguments {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0 && strings.HasPrefix(arguments[i:], " | "):
			parts, from = append(parts, arguments[from:i]), i+len(" | ")
		}
	}
	return append(parts, arguments[from:])
}

// Commands are all commands of the Redis protocol, by the sections of COMMANDS.md.
var Commands = []Group{
	{"connection", "Connection", []Command{
		{"HELLO", "[2|3 [AUTH user password] [SETNAME connection-name]]", "a map of what the server is", "the version is that of the Redis whose commands these are; INFO tells Holdfast's"},
		{"AUTH", "[user] password", "OK", "a wrong one is answered later each time, from 100 ms to 5 s. In a transaction a password must have been given before"},
		{"ACL WHOAMI", "", "name of the user", ""},
		{"ACL USERS", "", "names of all users", ""},
		{"ACL LIST", "", "a line for each user", "its grants are selectors; hashes are not told"},
		{"ACL CAT", "[category]", "the categories of Redis, or an empty array", "no command has one: [rights](#users) are in their place"},
		{"ACL HELP", "", "lines of help", ""},
		{"PING", "[text]", "PONG, or the text", ""},
		{"ECHO", "text", "the text", ""},
		{"QUIT", "", "OK, and the connection ends", ""},
		{"RESET", "", "RESET; the connection is as new: its user is that of its client certificate, or nobody", ""},
		{"SELECT", "n", "OK", "0 to 15; what has a name is of the database that was selected last"},
		{"TIME", "", "seconds and microseconds", ""},
		{"CLIENT ID", "", "number of the connection", "no connection of an earlier start had it"},
		{"CLIENT GETNAME", "", "name of the connection, or null", ""},
		{"CLIENT SETNAME", "connection-name", "OK", "at most 256 bytes"},
		{"CLIENT SETINFO", "LIB-NAME|LIB-VER text", "OK", "of Redis 7.2"},
		{"CLIENT INFO", "", "the connection's line", "fields about memory are coarse"},
		{"CLIENT LIST", "[TYPE type | ID client-id …]", "a line for each connection", "lists connections that have sent something, of this protocol; takes at most 16,384 ids; without the right operate those of the same user"},
		{"CLIENT KILL", "address | [ID client-id] [ADDR a] [LADDR a] [TYPE t] [USER u] [SKIPME yes|no]", "OK, or how many were ended", "`CLIENT KILL ID` of a connection of the same user needs no right"},
		{"CLIENT UNBLOCK", "client-id [TIMEOUT|ERROR]", "1 if the connection was blocked, else 0", "for a connection of the same user it needs no right"},
		{"CLIENT REPLY", "ON|OFF|SKIP", "OK for ON", "in a transaction only ON"},
		{"CLIENT HELP", "", "lines of help", ""},
	}},
	{"server", "Server", []Command{
		{"INFO", "[section …]", "lines of figures", "fewer lines; `redis_version` is 7.0.15, `holdfast_version` is the server's; `connections` are those of all protocols; `disk_free` and `disk_total` are bytes of the file system of the data; `disk_level` is `normal`, or what a full disk has the server refuse: `no-push` or `stop` (everything); `storage_failures` counts work in the background that failed and was tried again, and `damaged_packets` those that were set aside since the start"},
		{"DBSIZE", "", "number of names of the database", ""},
		{"CONFIG GET", "pattern …", "a map of settings", "those that clients ask about; `requirepass` is never told; at most 10,000 patterns"},
		{"CONFIG RESETSTAT", "", "OK", ""},
		{"CONFIG HELP", "", "lines of help", ""},
		{"COMMAND", "", "an array of all commands", "categories, tips and places of keys in detail are empty"},
		{"COMMAND COUNT", "", "number of commands", ""},
		{"COMMAND DOCS", "[command-name …]", "a map of commands", "says what this document says: the syntax as arguments, the rest of the row as the summary, and the section as the group; complexity only where it is the same however much is stored"},
		{"COMMAND GETKEYS", "command argument …", "the names in a request", "only where their places are fixed"},
		{"COMMAND INFO", "[command-name …]", "as COMMAND", ""},
		{"COMMAND LIST", "[FILTERBY MODULE module | FILTERBY ACLCAT category | FILTERBY PATTERN pattern]", "names of commands", "there are no modules and categories"},
		{"COMMAND HELP", "", "lines of help", ""},
		{"MEMORY USAGE", "name [SAMPLES n]", "bytes", "a rough figure; it looks at five fields"},
		{"MEMORY HELP", "", "lines of help", ""},
	}},
	{"transactions", "Transactions", []Command{
		{"MULTI", "", "OK", "the commands queued take at most 4 MiB"},
		{"EXEC", "", "an array of replies; null if a watched name was changed", "a transaction that stores more while the disk is nearly full is refused as a whole with EXECABORT"},
		{"DISCARD", "", "OK", ""},
		{"WATCH", "name …", "OK", "notices what any protocol changes, and expiry; the names take at most 4 MiB, with 150 bytes more for each"},
		{"UNWATCH", "", "OK", ""},
	}},
	{"pubsub", "Channels", []Command{
		{"SUBSCRIBE", "channel …", "for each: subscribe, channel, number of subscriptions", "those that begin with `holdfast:` tell [events](#events)"},
		{"PSUBSCRIBE", "pattern …", "for each: psubscribe, pattern, number of subscriptions", "none matches the channels of [events](#events); each counts 2 KiB and 32 times its bytes of what all connections may hold"},
		{"UNSUBSCRIBE", "[channel …]", "for each: unsubscribe, channel, number of subscriptions", ""},
		{"PUNSUBSCRIBE", "[pattern …]", "for each: punsubscribe, pattern, number of subscriptions", ""},
		{"PUBLISH", "channel text", "how many got it", "nobody gets it if the patterns cost too much for this channel; leaves after what was done before is on disk; a subscriber for which 32 MiB wait is cut off; who publishes to itself gets the message behind the reply, in a transaction behind that of EXEC, as in Redis 7.2; refused where the channel begins with `holdfast:`"},
		{"PUBSUB CHANNELS", "[pattern]", "channels with subscribers", ""},
		{"PUBSUB NUMSUB", "[channel …]", "channels and their numbers of subscribers", ""},
		{"PUBSUB NUMPAT", "", "number of patterns", ""},
		{"PUBSUB HELP", "", "lines of help", ""},
	}},
	{"list", "Lists", []Command{
		{"LPUSH", "name value …", "the new length", ""},
		{"RPUSH", "name value …", "the new length", ""},
		{"LPUSHX", "name value …", "the new length; 0 if there is no list", ""},
		{"RPUSHX", "name value …", "the new length; 0 if there is no list", ""},
		{"LPOP", "name [count]", "the element, or null; with a count an array, or the null array", "takes at most 16,384 elements and 16 MiB"},
		{"RPOP", "name [count]", "the element, or null; with a count an array, or the null array", "takes at most 16,384 elements and 16 MiB"},
		{"LMPOP", "n name … LEFT|RIGHT [COUNT count]", "name and an array of elements, or the null array", "takes at most 16,384 elements and 16 MiB"},
		{"LLEN", "name", "the length", ""},
		{"LRANGE", "name first last", "an array of elements", ""},
		{"LINDEX", "name index", "the element, or null", "walks from the nearer end in steps of dozens of elements"},
		{"LSET", "name index value", "OK", "finds the element as LINDEX does"},
		{"LINSERT", "name BEFORE|AFTER value new", "the new length; -1 without the value, 0 without the list", "moves the elements of the shorter side, at most 16,384"},
		{"LREM", "name count value", "how many were deleted", "looks only at elements that equal the value; of more than 16,384 it deletes none: give a count"},
		{"LTRIM", "name first last", "OK", ""},
		{"LPOS", "name value [RANK r] [COUNT n] [MAXLEN n]", "a position or null; with COUNT an array of positions", "looks only at elements that equal the value; COUNT 0 stands for 65,535, which is the most"},
		{"RPOPLPUSH", "from to", "the element, or null", ""},
		{"LMOVE", "from to LEFT|RIGHT LEFT|RIGHT", "the element, or null", ""},
		{"BLPOP", "name … timeout", "name and element; the null array after the timeout", "at most 1,024 names"},
		{"BRPOP", "name … timeout", "name and element; the null array after the timeout", "at most 1,024 names"},
		{"BLMPOP", "timeout n name … LEFT|RIGHT [COUNT count]", "name and an array of elements; the null array after the timeout", "at most 1,024 names; takes at most 16,384 elements and 16 MiB"},
		{"BRPOPLPUSH", "from to timeout", "the element; the null array after the timeout", ""},
		{"BLMOVE", "from to LEFT|RIGHT LEFT|RIGHT timeout", "the element; the null array after the timeout", ""},
	}},
	{"queue", "Work queue", []Command{
		{"QPUSH", "queue payload [PRIO n] [KEY k] [TTL ms] [DELAY ms|AT unix-ms] [TAG name value]… [PRODUCER name] [UNIQUE id [WINDOW ms]] [BLOCK ms]", "the id; null when BLOCK has ended, or if the queue drops", "priority 128 unless given, at most 4,294,967,295; TTL 0 never expires; AT a moment that is past means at once"},
		{"QMPUSH", "queue n payload… [PRIO n] [KEY k] [TTL ms] [DELAY ms|AT unix-ms] [TAG name value]… [PRODUCER name] [BLOCK ms]", "an array of ids, or of nulls if the queue drops; the null array when BLOCK has ended", "all or none; without UNIQUE"},
		{"QLOAD", "queue payload [PRIO n] [KEY k] [EXPIRES unix-ms] [AT unix-ms] [TAG name value]… [PRODUCER name] [UNIQUE id [WINDOW unix-ms]] [PUSHED unix-ms] [STATE state] [UNTIL unix-ms] [ATTEMPTS n] [FIRST unix-ms] [LAST unix-ms] [CONSUMER name] [REASON text] [ORIGIN queue] [PROGRESS percent [TEXT text]]", "the id; null if it has expired", "a packet as another server had it: below"},
		{"QPOP", "queue [OR queue]… [COUNT n] [NEWEST|OLDEST] [GROUP] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [BLOCK ms]", "an array of packets; the null array when BLOCK has ended", "takes them for good; the best priority first, of that the oldest unless NEWEST; from the first of the queues that has one; one packet, or COUNT, or with GROUP all of its key, those of priority 0 as well"},
		{"QCLAIM", "queue [OR queue]… [COUNT n] [NEWEST|OLDEST] [GROUP] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [LEASE ms] [CONSUMER name] [BLOCK ms]", "an array of packets; the null array when BLOCK has ended", "the consumer is the name of CLIENT SETNAME, else the address, unless given; a group is cut at 1,000 packets"},
		{"QACK", "queue id token [id token]…", "how many claims were good", "`STALE` if a single one was not"},
		{"QNACK", "queue id token [DELAY ms|AT unix-ms|DEAD] [REASON text] [UNCOUNTED]", "the state then: ready, delayed or dead; or expired", "dead, too, after the last of `max-attempts`; one that expired while it was claimed is gone. UNCOUNTED: the claim was no attempt, so it is not dead at the last one either"},
		{"QEXTEND", "queue id token ms", "when the lease ends", "counted from now; it may be sooner than before"},
		{"QPROGRESS", "queue id token percent [text]", "OK", "does not extend the lease"},
		{"QPEEK", "queue [COUNT n]", "an array of packets", "what would come next, in order; 10 unless given"},
		{"QLIST", "queue [STATE state] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [CURSOR c] [COUNT n]", "the next cursor, and an array of packets", "state by state, or one; delayed packets soonest first, others by priority and age; the cursor is 0 at the start and at the end, else opaque; 10 unless COUNT is given; with FILTER it may have fewer, or none, before the end, as it looks at 10,000 packets of a state at most"},
		{"QSHOW", "queue id", "the packet, or the null array", "with `first-claim`, `last-claim` and `why`"},
		{"QDEL", "queue id…", "how many were deleted", "in any state"},
		{"QMOVE", "queue id… TO other | queue TO other [STATE state] [COUNT n] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [DRYRUN]", "how many were moved", "with id, priority, age and state; claimed and damaged ones stay"},
		{"QPRIO", "queue id n", "1, or 0 if there is no such packet", ""},
		{"QPURGE", "queue [STATE state] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [DRYRUN]", "how many were deleted", "without STATE those in any state, claimed ones too"},
		{"QHARVEST", "queue [OLDER ms] [CONSUMER name] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [DRYRUN]", "how many claims were ended", "they are ready again; OLDER: those that are at least that old; CONSUMER: those of one"},
		{"QREDRIVE", "queue id | queue [COUNT n] [TO other] [FILTER tag op value]… [MATCH ALL | MATCH ANY n] [DRYRUN]", "how many dead packets are ready again", "with no attempts; of a `dead-letter` queue the packets return to their origins. One whose origin is gone stays; an error if only such are left"},
		{"QSET", "queue name value [name value]…", "OK", "all or none; makes the queue"},
		{"QGET", "queue", "a map of settings", "those in force"},
		{"QCLOSE", "queue", "1, or 0 if it was closed before", "for ever: nothing is pushed any more; makes the queue"},
		{"QDROP", "queue", "OK", "deletes its packets and settings"},
		{"QUEUES", "[MATCH pattern]", "an array of names", "as KEYS, but only queues, and only those that the user may look at"},
		{"QLEN", "queue", "how many packets are ready, delayed or claimed", ""},
		{"QSTAT", "queue", "a map", "below"},
		{"QCONSUMERS", "queue", "an array of maps: `name`, `seen`, `claimed`, `since`, `ids`, `waiting`", "who claims or waits, how many packets it holds, when it last made a call, since when it holds them, their ids (up to 100), and what it waits for (up to 100 maps of `queues` and `filter`, in the words of the request); those that hold none and do not wait are listed for ten minutes, at most 131,072 in the store. It looks at 100,000 claims and 100,000 that wait: where there are more, `claimed` is what it found, and some are missing"},
	}},
	{"string", "Strings", []Command{
		{"GET", "name", "the string, or null", ""},
		{"SET", "name value [NX|XX] [GET] [EX s|PX ms|EXAT unix-seconds|PXAT unix-ms|KEEPTTL]", "OK, or null if not set; with GET the string before, or null", ""},
		{"SETNX", "name value", "1 if set, else 0", ""},
		{"SETEX", "name seconds value", "OK", ""},
		{"PSETEX", "name ms value", "OK", ""},
		{"GETSET", "name value", "the string before, or null", ""},
		{"GETDEL", "name", "the string, or null", ""},
		{"GETEX", "name [EX s|PX ms|EXAT unix-seconds|PXAT unix-ms|PERSIST]", "the string, or null", ""},
		{"MGET", "name …", "an array of strings and nulls", ""},
		{"MSET", "name value [name value]…", "OK", ""},
		{"MSETNX", "name value [name value]…", "1 if set, 0 if one of the names exists", ""},
		{"INCR", "name", "the new number", ""},
		{"DECR", "name", "the new number", ""},
		{"INCRBY", "name n", "the new number", ""},
		{"DECRBY", "name n", "the new number", ""},
		{"INCRBYFLOAT", "name x", "the new number", "neither hexadecimal nor infinite numbers; what is too small for a long double is 0"},
		{"APPEND", "name text", "the new length", ""},
		{"STRLEN", "name", "the length", ""},
		{"GETRANGE", "name first last", "the bytes", ""},
		{"SUBSTR", "name first last", "the bytes", ""},
		{"SETRANGE", "name offset bytes", "the new length", ""},
	}},
	{"hash", "Hashes", []Command{
		{"HSET", "name field value [field value]…", "how many fields are new", ""},
		{"HMSET", "name field value [field value]…", "OK", ""},
		{"HSETNX", "name field value", "1 if set, else 0", ""},
		{"HGET", "name field", "the value, or null", ""},
		{"HMGET", "name field …", "an array of values and nulls", ""},
		{"HGETALL", "name", "a map of fields and values", ""},
		{"HKEYS", "name", "an array of fields", ""},
		{"HVALS", "name", "an array of values", ""},
		{"HDEL", "name field …", "how many were deleted", ""},
		{"HEXISTS", "name field", "1 or 0", ""},
		{"HLEN", "name", "number of fields", ""},
		{"HSTRLEN", "name field", "length of the value", ""},
		{"HINCRBY", "name field n", "the new number", ""},
		{"HINCRBYFLOAT", "name field x", "the new number", "as INCRBYFLOAT"},
		{"HSCAN", "name cursor [MATCH pattern] [COUNT n]", "the next cursor, and an array of fields and values", "looks at 4,000 fields at most"},
	}},
	{"generic", "Names", []Command{
		{"DEL", "name …", "how many were deleted", "a long list is deleted with one record, at once"},
		{"UNLINK", "name …", "how many were deleted", "as DEL"},
		{"EXISTS", "name …", "how many exist", ""},
		{"TOUCH", "name …", "how many exist", "changes nothing"},
		{"TYPE", "name", "list, string, hash or none", ""},
		{"KEYS", "pattern", "an array of names", ""},
		{"SCAN", "cursor [MATCH pattern] [COUNT n] [TYPE type]", "the next cursor, and an array of names", "looks at 4,000 names at most"},
		{"RENAME", "from to", "OK", ""},
		{"RENAMENX", "from to", "1 if renamed, 0 if the other name exists", ""},
		{"EXPIRE", "name seconds [NX|XX|GT|LT]", "1 if set, else 0", ""},
		{"PEXPIRE", "name ms [NX|XX|GT|LT]", "1 if set, else 0", ""},
		{"EXPIREAT", "name unix-seconds [NX|XX|GT|LT]", "1 if set, else 0", ""},
		{"PEXPIREAT", "name unix-ms [NX|XX|GT|LT]", "1 if set, else 0", ""},
		{"PERSIST", "name", "1 if it expired before, else 0", ""},
		{"TTL", "name", "seconds; -1 never, -2 no such name", ""},
		{"PTTL", "name", "milliseconds; -1 never, -2 no such name", ""},
		{"EXPIRETIME", "name", "Unix seconds; -1 never, -2 no such name", ""},
		{"PEXPIRETIME", "name", "Unix milliseconds; -1 never, -2 no such name", ""},
		{"OBJECT", "ENCODING|REFCOUNT|IDLETIME|FREQ name | HELP", "what Redis would say of a small value, or null", "the value is stored otherwise; REFCOUNT is 1, IDLETIME 0"},
		{"FLUSHDB", "[ASYNC|SYNC]", "OK", "deletes all that the database holds, at once; of database 0 that is what any protocol has brought"},
		{"FLUSHALL", "[ASYNC|SYNC]", "OK", "as FLUSHDB, for all databases"},
	}},
}
