package loadgen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

var testPackets = Packets{Queue: "q", Size: 16}

var testItems = Items{Queue: "q", Live: 1000}

// conversations are replies of a server with what they must be counted as.
var conversations = []struct {
	name    string
	proto   func() Protocol
	begin   int // requests appended before the replies come
	replies string
	want    Progress
	sent    string // what the replies call for
}{
	{
		name: "pinpriq pushes are complete with their barrier", begin: 5,
		proto:   func() Protocol { return PinpriqPush(testPackets) },
		replies: "\x00\x00",
		want:    Progress{Done: 5, Packets: 5},
	},
	{
		name: "pinpriq pops find one, none, a group of three, one without key and payload", begin: 4,
		proto: func() Protocol { return PinpriqPop("q") },
		replies: "\x00\x01\x00\x02\x00\x03kkppp" + "\x00\x00" +
			"\x00\x03\x00\x01\x00\x00k\x00\x00\x00\x02pp\x00\x00\x00\x00" + "\x00\x01\x00\x00\x00\x00",
		want: Progress{Done: 4, Empty: 1, Packets: 5},
	},
	{
		name: "pinpriq deliveries are answered by credits", begin: 2,
		proto:   func() Protocol { return PinpriqSubscribe("q") },
		replies: "\x00\x01\x00\x01\x00\x01kp" + "\x00\x02\x00\x01\x00\x01kp\x00\x01\x00\x01kp",
		want:    Progress{Packets: 3},
		sent:    "AA",
	},
	{
		name: "pinpriq pairs", begin: 2,
		proto:   func() Protocol { return PinpriqPair(testPackets) },
		replies: "\x00\x01\x00\x01\x00\x01kp" + "\x00\x00",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "redis additions", begin: 3,
		proto:   func() Protocol { return RedisZAdd(testPackets) },
		replies: ":1\r\n:1\r\n:1\r\n",
		want:    Progress{Done: 3, Packets: 3},
	},
	{
		name: "redis pops find one, none, one with an empty member and line ends inside", begin: 3,
		proto:   func() Protocol { return Redis("ZPOPMIN", "q") },
		replies: "*2\r\n$4\r\nab\r\n\r\n$1\r\n3\r\n" + "*0\r\n" + "*2\r\n$0\r\n\r\n$1\r\n3\r\n",
		want:    Progress{Done: 3, Empty: 1, Packets: 2},
	},
	{
		name: "redis waiting pops find one and time out", begin: 2,
		proto:   func() Protocol { return Redis("BZPOPMIN", "q", "0") },
		replies: "*3\r\n$1\r\nq\r\n$2\r\nab\r\n$1\r\n3\r\n" + "*-1\r\n",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "redis nil is nothing, and a string may look like it", begin: 2,
		proto:   func() Protocol { return Redis("ZPOPMIN", "q") },
		replies: "$-1\r\n$3\r\n$-1\r\n",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "redis nested arrays are one reply", begin: 2,
		proto:   func() Protocol { return Redis("ZPOPMIN", "q") },
		replies: "*2\r\n*2\r\n:0\r\n*0\r\n$-1\r\n" + "*1\r\n+x\r\n",
		want:    Progress{Done: 2, Packets: 2},
	},
	{
		name: "redis pushes answer with the length", begin: 2,
		proto:   func() Protocol { return RedisLPush(testPackets) },
		replies: ":1\r\n:100000\r\n",
		want:    Progress{Done: 2, Packets: 2},
	},
	{
		name: "redis pops of a list find one and none", begin: 2,
		proto:   func() Protocol { return RedisRPop("q") },
		replies: "$2\r\nab\r\n" + "$-1\r\n",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "redis waiting pops of a list answer with its name", begin: 1,
		proto:   func() Protocol { return Redis("BRPOP", "q", "0") },
		replies: "*2\r\n$1\r\nq\r\n$2\r\nab\r\n",
		want:    Progress{Done: 1, Packets: 1},
	},
	{
		name: "redis claims are complete with their commit", begin: 2,
		proto:   func() Protocol { return RedisClaim(testPackets, "claimed") },
		replies: "$2\r\nab\r\n:1\r\n" + "$2\r\ncd\r\n:1\r\n",
		want:    Progress{Done: 2, Packets: 2},
	},
	{
		name: "queue pops find one and none", begin: 2,
		proto:   func() Protocol { return Redis("QPOP", "q") },
		replies: "*1\r\n" + claimReply("7", "1") + "*0\r\n",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "queue work is acknowledged with what was claimed", begin: 2,
		proto:   func() Protocol { return QueueWork(testPackets) },
		replies: "$1\r\n7\r\n$2\r\n-8\r\n" + "*1\r\n" + claimReply("-8", "31") + "*1\r\n" + claimReply("7", "5") + ":1\r\n:1\r\n",
		want:    Progress{Done: 2, Packets: 2},
		sent: strings.Repeat("*2\r\n$6\r\nQCLAIM\r\n$1\r\nq\r\n", 2) +
			"*4\r\n$4\r\nQACK\r\n$1\r\nq\r\n$2\r\n-8\r\n$2\r\n31\r\n*4\r\n$4\r\nQACK\r\n$1\r\nq\r\n$1\r\n7\r\n$1\r\n5\r\n",
	},
	{
		name: "queue work of a group takes one request a step", begin: 2,
		proto:   func() Protocol { return QueueGroupWork(testPackets) },
		replies: "*2\r\n$1\r\n7\r\n$2\r\n-8\r\n" + "*2\r\n" + claimReply("-8", "31") + claimReply("7", "5") + ":2\r\n",
		want:    Progress{Done: 2, Packets: 2},
		sent: "*4\r\n$6\r\nQCLAIM\r\n$1\r\nq\r\n$5\r\nCOUNT\r\n$1\r\n2\r\n" +
			"*6\r\n$4\r\nQACK\r\n$1\r\nq\r\n$2\r\n-8\r\n$2\r\n31\r\n$1\r\n7\r\n$1\r\n5\r\n",
	},
	{
		name: "redis work deletes what was moved", begin: 2,
		proto:   func() Protocol { return RedisWork(testPackets, "c") },
		replies: ":1\r\n:2\r\n" + "$2\r\nab\r\n$3\r\n:0\n\r\n" + ":1\r\n:1\r\n",
		want:    Progress{Done: 2, Packets: 2},
		sent: strings.Repeat("*3\r\n$9\r\nRPOPLPUSH\r\n$1\r\nq\r\n$1\r\nc\r\n", 2) +
			"*4\r\n$4\r\nLREM\r\n$1\r\nc\r\n$2\r\n-1\r\n$2\r\nab\r\n*4\r\n$4\r\nLREM\r\n$1\r\nc\r\n$2\r\n-1\r\n$3\r\n:0\n\r\n",
	},
	{
		name: "beanstalkd work deletes what was reserved", begin: 2,
		proto:   func() Protocol { return BeanstalkdWork(testPackets) },
		replies: "INSERTED 7\r\nINSERTED 12\r\n" + "RESERVED 7 4\r\na\r\nb\r\nRESERVED 12 0\r\n\r\n" + "DELETED\r\nDELETED\r\n",
		want:    Progress{Done: 2, Packets: 2},
		sent:    strings.Repeat("reserve-with-timeout 0\r\n", 2) + "delete 7\r\ndelete 12\r\n",
	},
	{
		name: "redis strings are set", begin: 2,
		proto:   func() Protocol { return RedisSet(testItems, 16) },
		replies: "+OK\r\n+OK\r\n",
		want:    Progress{Done: 2, Packets: 2},
	},
	{
		name: "redis strings are read, and one is not there", begin: 2,
		proto:   func() Protocol { return Redis("GET", testItems) },
		replies: "$2\r\nab\r\n$-1\r\n",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "beanstalkd puts", begin: 2,
		proto:   func() Protocol { return BeanstalkdPut(testPackets) },
		replies: "INSERTED 1\r\nINSERTED 1234567\r\n",
		want:    Progress{Done: 2, Packets: 2},
	},
	{
		name: "beanstalkd reservations are deleted, and one finds nothing", begin: 3,
		proto:   func() Protocol { return BeanstalkdTake() },
		replies: "RESERVED 7 4\r\na\r\nb\r\nTIMED_OUT\r\nRESERVED 12 0\r\n\r\nDELETED\r\nDELETED\r\n",
		want:    Progress{Done: 3, Empty: 1, Packets: 2},
		sent:    "delete 7\r\ndelete 12\r\n",
	},
	{
		name: "barbershop updates", begin: 3,
		proto:   func() Protocol { return BarbershopUpdate(testItems) },
		replies: "OK\r\nOK\nOK\r\n",
		want:    Progress{Done: 3, Packets: 3},
	},
	{
		name: "barbershop takes two, the lowest and the highest number, and finds none", begin: 3,
		proto:   func() Protocol { return BarbershopNext() },
		replies: "0\r\n-1\r\n4294967295\r\n",
		want:    Progress{Done: 3, Empty: 1, Packets: 2},
	},
	{
		name: "redis increments answer with the score", begin: 2,
		proto:   func() Protocol { return RedisZIncrBy(testItems) },
		replies: "$1\r\n7\r\n$10\r\n4294967295\r\n",
		want:    Progress{Done: 2, Packets: 2},
	},
	{
		name: "redis takes the highest and finds none", begin: 2,
		proto:   func() Protocol { return Redis("ZPOPMAX", "q") },
		replies: "*2\r\n$4\r\n5001\r\n$1\r\n3\r\n" + "*0\r\n",
		want:    Progress{Done: 2, Empty: 1, Packets: 1},
	},
	{
		name: "amqp confirms come alone, in any order, and for all up to one", begin: 5,
		proto:   func() Protocol { return AMQPPublish(testPackets) },
		replies: confirm(2, 0) + confirm(4, 0) + confirm(4, 1) + confirm(5, 1),
		want:    Progress{Done: 5, Packets: 5},
	},
	{
		name: "amqp logs in with many steps, of which the last counts", begin: 1,
		proto:   func() Protocol { return AMQPLogin("q") },
		replies: string(amqpMethod(0, 10, 10, "some fields")) + string(amqpMethod(1, 50, 11, "")) + string(amqpMethod(1, 85, 11, "")),
		want:    Progress{Done: 1, Empty: 1},
	},
	{
		name: "nats acknowledges, and asks whether the client lives", begin: 2,
		proto:   func() Protocol { return NATSPublish(testPackets) },
		replies: "INFO {\"seq\":1}\r\nPING\r\nMSG _INBOX.1 1 27\r\n{\"stream\":\"jobs\", \"seq\":1}\r\nMSG _INBOX.1 1 27\r\n{\"stream\":\"jobs\", \"seq\":2}\r\n",
		want:    Progress{Done: 2, Packets: 2},
		sent:    "PONG\r\n",
	},
}

// confirm is a confirm of RabbitMQ.
func confirm(tag, multiple byte) string {
	return string(amqpMethod(1, 60, 80, "\x00\x00\x00\x00\x00\x00\x00"+string([]byte{tag, multiple})))
}

// claimReply is a packet of Holdfast's queues.
func claimReply(id, token string) string {
	return string(command("id", id, "queue", "q", "payload", "ab", "attempt", "1", "token", token, "state", "claimed")(nil, 0))
}

// converse feeds the pieces as a connection would and returns the sum.
func converse(t *testing.T, p Protocol, begin int, pieces ...string) (Progress, string) {
	t.Helper()
	p.Append(nil, 0, begin)
	var total Progress
	var sent, partial []byte
	for _, piece := range pieces {
		partial = append(partial, piece...)
		var progress Progress
		var err error
		if sent, progress, err = p.Consume(sent, partial); err != nil {
			t.Fatalf("pieces %q: %v", pieces, err)
		}
		partial = partial[progress.Used:]
		total.add(progress)
	}
	if len(partial) > 0 {
		t.Fatalf("pieces %q: %q was not used", pieces, partial)
	}
	return total, string(sent)
}

func TestRepliesAreCountedAtEverySplit(t *testing.T) {
	for _, row := range conversations {
		t.Run(row.name, func(t *testing.T) {
			for cut := range len(row.replies) + 1 {
				got, sent := converse(t, row.proto(), row.begin, row.replies[:cut], row.replies[cut:])
				if got != row.want || sent != row.sent {
					t.Fatalf("cut at %d: got %+v and sent %q, expected %+v and %q", cut, got, sent, row.want, row.sent)
				}
			}
			if got, sent := converse(t, row.proto(), row.begin, strings.Split(row.replies, "")...); got != row.want || sent != row.sent {
				t.Errorf("byte by byte: got %+v and sent %q, expected %+v and %q", got, sent, row.want, row.sent)
			}
		})
	}
}

func TestRefusalsAndOtherProtocolsAreErrors(t *testing.T) {
	for name, row := range map[string]struct {
		proto   Protocol
		replies string
	}{
		"redis error":                 {RedisZAdd(testPackets), ":1\r\n-LOADING Redis is loading\r\n"},
		"redis member not new":        {RedisZAdd(testPackets), ":0\r\n"},
		"redis type unknown":          {Redis("ZPOPMIN", "q"), "HTTP/1.1 400 Bad Request\r\n"},
		"redis empty line":            {Redis("ZPOPMIN", "q"), "\r\n"},
		"redis bad length":            {Redis("ZPOPMIN", "q"), "$12x\r\n"},
		"redis length below nil":      {Redis("ZPOPMIN", "q"), "*-2\r\n"},
		"redis length beyond a word":  {Redis("ZPOPMIN", "q"), "*99999999999999999999\r\n"},
		"redis endless line":          {Redis("ZPOPMIN", "q"), "+" + strings.Repeat("x", maxLine+1)},
		"redis claim of nothing":      {RedisClaim(testPackets, "claimed"), "$-1\r\n"},
		"redis commit of nothing":     {RedisClaim(testPackets, "claimed"), "$1\r\na\r\n:0\r\n"},
		"queue claim of nothing":      {QueueWork(testPackets), "$1\r\n7\r\n*0\r\n"},
		"queue claim gone":            {QueueWork(testPackets), "$1\r\n7\r\n*1\r\n" + claimReply("7", "1") + "-STALE\r\n"},
		"queue claim without token":   {QueueWork(testPackets), "$1\r\n7\r\n*1\r\n*2\r\n$2\r\nid\r\n$1\r\n7\r\n"},
		"queue acknowledges less":     {QueueGroupWork(testPackets), "*1\r\n$1\r\n7\r\n*1\r\n" + claimReply("7", "1") + ":2\r\n"},
		"queue renews nothing":        {QueueRenew("q"), "*0\r\n"},
		"redis work lost":             {RedisWork(testPackets, "c"), ":1\r\n$1\r\na\r\n:0\r\n"},
		"beanstalkd work in disorder": {BeanstalkdWork(testPackets), "DELETED\r\n"},
		"beanstalkd put refused":      {BeanstalkdPut(testPackets), "JOB_TOO_BIG\r\n"},
		"beanstalkd bad reservation":  {BeanstalkdTake(), "RESERVED 1\r\n"},
		"beanstalkd negative length":  {BeanstalkdTake(), "RESERVED 1 -5\r\n"},
		"beanstalkd deletion lost":    {BeanstalkdTake(), "NOT_FOUND\r\n"},
		"pinpriq barrier not empty":   {PinpriqPush(testPackets), "\x00\x01"},
		"redis increment refused":     {RedisZIncrBy(testItems), "-WRONGTYPE not a sorted set\r\n"},
		"barbershop update refused":   {BarbershopUpdate(testItems), "OK\r\nSERVER_ERROR the disk is full\r\n"},
		"barbershop wrong dialect":    {BarbershopUpdate(testItems), "+OK\r\n"},
		"barbershop next refused":     {BarbershopNext(), "ERROR\r\n"},
		"barbershop no item":          {BarbershopNext(), "\r\n"},
		"barbershop negative item":    {BarbershopNext(), "-2\r\n"},
		"amqp refuses":                {AMQPPublish(testPackets), string(amqpMethod(1, 60, 120, "\x00\x00\x00\x00\x00\x00\x00\x01\x00"))},
		"amqp closes":                 {AMQPLogin("q"), string(amqpMethod(0, 10, 50, "\x01\x93\x0eACCESS_REFUSED"))},
		"amqp of another version":     {AMQPLogin("q"), "AMQP\x00\x01\x00\x00"},
		"amqp confirms too much":      {AMQPPublish(testPackets), string(amqpMethod(1, 60, 80, "\x00\x00\x00\x00\x00\x01\x00\x00\x01"))},
		"nats has no stream":          {NATSPublish(testPackets), "MSG _INBOX.1 1 50\r\n{\"error\":{\"code\":503}}\r\n"},
		"nats refuses":                {NATSPublish(testPackets), "-ERR 'Authorization Violation'\r\n"},
		"barbershop endless line":     {BarbershopNext(), strings.Repeat("1", maxLine+2)},
	} {
		t.Run(name, func(t *testing.T) {
			row.proto.Append(nil, 0, 1)
			if _, p, err := row.proto.Consume(nil, []byte(row.replies)); err == nil {
				t.Errorf("%q gave %+v and no error", row.replies, p)
			}
		})
	}
}

func TestRequestsAreTheBytesOfTheirProtocol(t *testing.T) {
	p := Packets{Queue: "jobs", Size: 20, Base: 171, Levels: 20}
	payload := string(p.payload())
	items := Items{Queue: "board", First: 100, Live: 12, Spread: 1}
	ordered := items
	ordered.InOrder = true
	const message = "\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x28\x00\x00\x00\x04jobs\x00\xce" + // of AMQP
		"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x14\x10\x00\x02\xce" + "\x03\x00\x01\x00\x00\x00\x14"
	for name, row := range map[string]struct {
		proto Protocol
		want  string
	}{
		"pinpriq push": {PinpriqPush(p), "\x70\x00\x04\x00\x00\x03\x00\x08\x00\x14\x00\x00\x00\x00\x00\x00\x00\xb6" + payload + "jobs" +
			"\x70\x00\x04\x00\x00\x04\x00\x08\x00\x14\x00\x00\x00\x00\x00\x00\x00\xb7" + payload + "jobs" +
			"\x50\x00\x08\x00barrier"},
		"pinpriq pop":       {PinpriqPop("jobs"), "\x50\x00\x04jobs\x50\x00\x04jobs"},
		"pinpriq subscribe": {PinpriqSubscribe("jobs"), "\x73\x00\x04jobsAA"},
		"redis add": {RedisZAdd(p), "*4\r\n$4\r\nZADD\r\n$4\r\njobs\r\n$1\r\n3\r\n$20\r\n00000000000000b6" + payload[16:] + "\r\n" +
			"*4\r\n$4\r\nZADD\r\n$4\r\njobs\r\n$1\r\n4\r\n$20\r\n00000000000000b7" + payload[16:] + "\r\n"},
		"redis pop":         {Redis("ZPOPMIN", "jobs"), strings.Repeat("*2\r\n$7\r\nZPOPMIN\r\n$4\r\njobs\r\n", 2)},
		"redis waiting pop": {Redis("BZPOPMIN", "jobs", "0"), strings.Repeat("*3\r\n$8\r\nBZPOPMIN\r\n$4\r\njobs\r\n$1\r\n0\r\n", 2)},
		"redis push": {RedisLPush(p), "*3\r\n$5\r\nLPUSH\r\n$4\r\njobs\r\n$20\r\n00000000000000b6" + payload[16:] + "\r\n" +
			"*3\r\n$5\r\nLPUSH\r\n$4\r\njobs\r\n$20\r\n00000000000000b7" + payload[16:] + "\r\n"},
		"redis claim": {RedisClaim(p, "next"),
			"*3\r\n$9\r\nRPOPLPUSH\r\n$4\r\njobs\r\n$4\r\nnext\r\n*4\r\n$4\r\nLREM\r\n$4\r\nnext\r\n$1\r\n0\r\n$20\r\n00000000000000b6" + payload[16:] + "\r\n" +
				"*3\r\n$9\r\nRPOPLPUSH\r\n$4\r\njobs\r\n$4\r\nnext\r\n*4\r\n$4\r\nLREM\r\n$4\r\nnext\r\n$1\r\n0\r\n$20\r\n00000000000000b7" + payload[16:] + "\r\n"},
		"queue push": {Redis("QPUSH", "jobs", p), "*3\r\n$5\r\nQPUSH\r\n$4\r\njobs\r\n$20\r\n00000000000000b6" + payload[16:] + "\r\n" +
			"*3\r\n$5\r\nQPUSH\r\n$4\r\njobs\r\n$20\r\n00000000000000b7" + payload[16:] + "\r\n"},
		"queue group": {QueueGroupWork(p), "*5\r\n$6\r\nQMPUSH\r\n$4\r\njobs\r\n$1\r\n2\r\n$20\r\n00000000000000b6" + payload[16:] + "\r\n" +
			"$20\r\n00000000000000b7" + payload[16:] + "\r\n"},
		"queue claim": {QueueClaim("jobs", time.Hour), strings.Repeat("*4\r\n$6\r\nQCLAIM\r\n$4\r\njobs\r\n$5\r\nLEASE\r\n$7\r\n3600000\r\n", 2)},
		"redis set": {RedisSet(ordered, 20), "*3\r\n$3\r\nSET\r\n$22\r\nboard:0000000000000070\r\n$20\r\n" + payload + "\r\n" +
			"*3\r\n$3\r\nSET\r\n$22\r\nboard:0000000000000065\r\n$20\r\n" + payload + "\r\n"},
		"beanstalkd put": {BeanstalkdPut(p), "put 3 0 120 20\r\n00000000000000b6" + payload[16:] + "\r\n" +
			"put 4 0 120 20\r\n00000000000000b7" + payload[16:] + "\r\n"},
		"beanstalkd take": {BeanstalkdTake(), strings.Repeat("reserve-with-timeout 0\r\n", 2)},

		"barbershop fill": {BarbershopFill(items), "update 112 1\r\nupdate 101 1\r\n"},
		"barbershop next": {BarbershopNext(), "next\r\nnext\r\n"},
		"redis fill": {RedisZIncrBy(ordered), "*4\r\n$7\r\nZINCRBY\r\n$5\r\nboard\r\n$1\r\n1\r\n$3\r\n112\r\n" +
			"*4\r\n$7\r\nZINCRBY\r\n$5\r\nboard\r\n$1\r\n1\r\n$3\r\n101\r\n"},
		"amqp publish": {AMQPPublish(p), message + "00000000000000b6" + payload[16:] + "\xce" + message + "00000000000000b7" + payload[16:] + "\xce"},
		"nats publish": {NATSPublish(p), fmt.Sprintf("CONNECT {\"verbose\":false}\r\nSUB %s 1\r\nPUB jobs %[1]s 20\r\n00000000000000b6%s\r\n"+
			"PUB jobs %[1]s 20\r\n00000000000000b7%[2]s\r\n", fmt.Sprint("_INBOX.", inboxes.Load()), payload[16:])},
		"redis highest": {Redis("ZPOPMAX", "board"), strings.Repeat("*2\r\n$7\r\nZPOPMAX\r\n$5\r\nboard\r\n", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := row.proto.Append(nil, 11, 2); string(got) != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

func TestClaimsAreRenewedAgainAndAgain(t *testing.T) {
	p := QueueRenew("q")
	sent := string(p.Append(nil, 0, 2))
	if want := strings.Repeat("*4\r\n$6\r\nQCLAIM\r\n$1\r\nq\r\n$5\r\nLEASE\r\n$8\r\n86400000\r\n", 2); sent != want {
		t.Fatalf("first %q, expected %q", sent, want)
	}
	renewals := func(id, token string) string {
		return string(command("QEXTEND", "q", id, token, "86400000")(nil, 0)) + string(command("QPROGRESS", "q", id, token, "50")(nil, 0))
	}
	replies := "*1\r\n" + claimReply("7", "3") + "*1\r\n" + claimReply("9", "4")
	out, got, err := p.Consume(nil, []byte(replies))
	if err != nil || got != (Progress{Used: len(replies)}) || string(out) != renewals("7", "3") {
		t.Fatalf("claims: %+v, %v, then %q, expected two renewals and that claims are not counted", got, err, out)
	}
	out = p.Append(nil, 2, 4)
	_, got, err = p.Consume(nil, []byte(":0\r\n+OK\r\n"))
	if err != nil || got.Done != 2 || got.Packets != 2 || string(out) != renewals("9", "4")+renewals("7", "3") {
		t.Errorf("renewals: %+v, %v, after %q", got, err, out)
	}
}

func TestBlocksOfPacketsShareAPriority(t *testing.T) {
	p := Packets{Levels: 3, Block: 2}
	var got []byte
	for i := range uint64(8) {
		got = append(got, byte('0'+p.priority(i)))
	}
	if string(got) != "11223311" {
		t.Errorf("the priorities are %s, expected 11223311", got)
	}
}

func TestARequestAndItsReplyAllocateNothing(t *testing.T) {
	for _, row := range conversations {
		p := row.proto()
		request, reply := make([]byte, 0, 1<<16), make([]byte, 0, 1<<16)
		replies := []byte(row.replies)
		allocs := testing.AllocsPerRun(10, func() {
			request = p.Append(request[:0], 1, row.begin)
			var err error
			var progress Progress
			if reply, progress, err = p.Consume(reply[:0], replies); err != nil || progress.Used != len(replies) {
				t.Fatalf("%s: %v after %d bytes", row.name, err, progress.Used)
			}
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", row.name, allocs)
		}
	}
}

func TestPayloadsAreUnique(t *testing.T) {
	p := Packets{Queue: "q", Size: 32, Base: 1 << 60}
	a := RedisZAdd(p).Append(nil, 1, 1)
	b := RedisZAdd(p).Append(nil, 2, 1)
	if bytes.Equal(a[len(a)-34:], b[len(b)-34:]) {
		t.Error("packets 1 and 2 have the same member")
	}
}
