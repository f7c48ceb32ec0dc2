package words

// Kind says what a value is, and so how people read it.
type Kind uint8

// The kinds of values.
const (
	Gauge  Kind = iota // packets that there are now
	Size               // bytes that there are now
	Total              // packets that there were, ever: it has a rate
	Flag               // 1 if it is so, else 0
	Number             // any other
	Percent
	Moment // Unix milliseconds
	Span   // in milliseconds
	Text
	Bytes // which may be no text
	Pairs // names and their texts
	Texts
	Rows // of fields
)

// Field is what the server tells of a packet or a queue under a name.
type Field struct {
	Name string
	Kind Kind
	Says string
}

// The places of the figures in QueueFigures.
const (
	Ready = iota
	Hidden
	Delayed
	Claimed
	Dead
	Done
	Damaged
	ByteSize
	Pushed
	Popped
	Acked
	Nacked
	Expired
	Died
	Dropped
	Cancelled
	PausedIn
	PausedOut
	Full
	Closed
	Overdue
	Held
	AtLimit
	SharesAtLimit
	SharesNotDue
	PacketsBehind
	DiedElsewhere
	Figures // how many there are
)

// QueueFigures are the figures of a queue, in the order in which QSTAT tells them.
var QueueFigures = [Figures]Field{
	Ready:     {"ready", Gauge, "packets that a consumer may take"},
	Hidden:    {"hidden", Gauge, "packets that are ready, but of priority 0"},
	Delayed:   {"delayed", Gauge, "packets that wait for their moment"},
	Claimed:   {"claimed", Gauge, "packets that consumers hold"},
	Dead:      {"dead", Gauge, "packets that died, and are still here"},
	Done:      {"done", Gauge, "packets that were acknowledged, and are kept"},
	Damaged:   {"damaged", Gauge, "packets that cannot be read"},
	ByteSize:  {"bytes", Size, "keys, payloads and META of all these"},
	Pushed:    {"pushed", Total, "packets that came in"},
	Popped:    {"popped", Total, "packets that were taken without a claim"},
	Acked:     {"acked", Total, "packets that were claimed and acknowledged"},
	Nacked:    {"nacked", Total, "packets that were claimed and returned"},
	Expired:   {"expired", Total, "packets that expired"},
	Died:      {"died", Total, "packets that were tried too often"},
	Dropped:   {"dropped", Total, "packets that a full queue dropped"},
	Cancelled: {"cancelled", Total, "packets that were cancelled, and are gone"},
	PausedIn:  {"paused-in", Flag, "pushes are refused, or wait: `pause-in`"},
	PausedOut: {"paused-out", Flag, "nothing is taken: `pause-out`"},
	Full:      {"full", Flag, "it holds all that `bound` or `bound-bytes` allows; or a push found no room, until a look, about each second, finds nine tenths of it or less"},
	Closed:    {"closed", Flag, "QCLOSE has closed it for ever"},
	Overdue:   {"overdue", Flag, "its oldest ready packet was pushed longer ago than `alert-age`: of the 16 worst priorities, give or take a second or a hundredth"},
	Held:      {"held", Flag, "a consumer holds one of the first 64 claims, and has made no call for ten minutes since the start"},
	AtLimit:   {"at-limit", Flag, "all is claimed that `max-claimed` allows"},

	SharesAtLimit: {"shares-at-limit", Number, "shares with packets to give, of which as many are claimed as may be: only pops take more"},
	SharesNotDue:  {"shares-not-due", Number, "shares with packets to give, that wait for their rate or rest"},
	PacketsBehind: {"packets-behind", Number, "ready packets that wait for another one of their key: `strict`"},
	DiedElsewhere: {"died-elsewhere", Number, "packets that died in a queue whose `dead-letter` queue this is, in any state but done and damaged"},
}

// PacketFields are the fields of a packet, in the order in which the server tells them. One that
// does not apply is left out.
var PacketFields = [...]Field{
	{"id", Text, "what the packet is called: a text, and a number. The first push into a new data folder gives 1, and none gives 0. " +
		"It stays the same through claims, returns, death and moves to another queue or priority"},
	{"queue", Text, "where it is"},
	{"payload", Bytes, "what was pushed"},
	{"priority", Number, "1 is best; 0 goes only together with another packet of its key"},
	{"attempt", Number, "how many times it was claimed"},
	{"key", Bytes, "packets of one key are a group, which GROUP takes together"},
	{"tags", Pairs, "names and values, as a map"},
	{"producer", Text, "who pushed it, if that was said"},
	{"lease", Span, "how long a claim that says no LEASE lasts, in milliseconds, if that was said"},
	{"meta", Bytes, "what was pushed beside the payload, if anything was"},
	{"unique", Text, "the id that a UNIQUE push without WINDOW gave it"},
	{"enqueued", Moment, "when it was pushed"},
	{"expires", Moment, "when it goes, unless it is claimed then: a claimed packet stays with its consumer until the claim ends"},
	{"not-before", Moment, "when a delayed one becomes ready"},
	{"token", Number, "of the present claim. Tokens rise over the whole store, across restarts: " +
		"other systems can refuse what comes with a lower one"},
	{"lease-end", Moment, "when the claim ends by itself, give or take a millisecond"},
	{"cancelled", Flag, "1 if it is claimed and QCANCEL has cancelled it: " +
		"it is gone when the claim ends"},
	{"consumer", Text, "who claimed it last"},
	{"state", Text, "ready, delayed, claimed, dead, done or damaged; not of a packet that QPOP took"},
	{"reason", Text, "why it came back or died, the last time"},
	{"last-error-class", Text, "which kind of error that is: the first line of the reason up to its first colon, such as `ValueError`, " +
		"at most 64 bytes. In a `dead-letter` queue it begins behind `dead at attempt N:`. Not of a packet that is claimed or taken"},
	{"died", Moment, "when a dead one died; not in a `dead-letter` queue"},
	{"progress", Percent, "how far its consumer has come, in percent"},
	{"progress-text", Text, "the same in words"},
	{"origin", Text, "the queue where it died, if that has a `dead-letter` queue"},
	{"first-claim", Moment, "of QSHOW alone: when it was claimed first"},
	{"last-claim", Moment, "of QSHOW alone: when it was claimed last"},
	{"behind", Number, "of QSHOW alone: how many packets of the queue, or of its share, a take without options gets before it; not of priority 0"},
	{"why", Text, "of QSHOW alone: why it is not delivered now, in a sentence"},
}

// State is where a packet is in its life.
type State struct{ Name, WaitsFor, EndsBy string }

// PacketStates are the states of a packet, in the order in which lists tell them.
var PacketStates = [...]State{
	{"ready", "a consumer", "QCLAIM, QPOP and every other pop"},
	{"delayed", "its moment: DELAY, AT, or the backoff after a failed attempt", "becomes ready then"},
	{"claimed", "the answer of its consumer", "QACK, QNACK, or the end of the lease: ready again, or dead; gone if it was cancelled"},
	{"dead", "somebody to look at it: it was claimed `max-attempts` times, or returned with DEAD", "QREDRIVE, QPURGE, QDEL, `retain-dead`"},
	{"done", "its end: it was acknowledged in a queue with `retain`", "is gone then"},
	{"damaged", "the next start of the server: it was ready, and cannot be read from the disk", "QPURGE, QDEL; ready again if it can be read then"},
}

// ConsumerFields are the columns of QCONSUMERS, in the order in which the server tells them. One
// that does not apply is left out.
var ConsumerFields = [...]Field{
	{"name", Text, "of CLIENT SETNAME or CONSUMER, else the address"},
	{"seen", Moment, "when it last made a call; not of one that has never claimed"},
	{"claimed", Gauge, "how many packets it holds"},
	{"since", Moment, "since when it holds them"},
	{"ids", Texts, "their ids, up to 100"},
	{"waiting", Rows, "what it waits for: up to 100 maps of `queues` and `filter`, in the words of the request"},
}

// ShareFields are the columns of QSHARES, as ConsumerFields are.
var ShareFields = [...]Field{
	{"name", Text, "the key of its packets, or the value of their tag; empty: those without one"},
	{"ready", Gauge, "how many packets a take can have"},
	{"claimed", Gauge, "how many are claimed"},
	{"age", Number, "milliseconds since the oldest that is ready was pushed, to a second, of the worst 16 priorities; not of one without"},
	{"weight", Number, "of QSHARE, else 1"},
	{"max-claimed", Number, "of QSHARE; not of one without"},
	{"rate", Text, "of QSHARE; not of one without"},
	{"rests", Number, "milliseconds for which it gives nothing, after HOLD; not of one that does not rest"},
	{"why", Text, "what keeps it from giving packets to claims, in words; not of one that nothing does"},
	{"until", Moment, "when that ends by itself, if that is known"},
}

// ProducerFields are the columns of QPRODUCERS, as ConsumerFields are.
var ProducerFields = [...]Field{
	{"name", Text, "of CLIENT SETNAME, else the address"},
	{"seen", Moment, "when it last pushed"},
	{"pushed", Total, "how many packets it pushed, since it is listed"},
	{"connection", Number, "the id of the connection that did it last; not of one that is gone, or of another protocol"},
	{"user", Text, "who that is"},
}
