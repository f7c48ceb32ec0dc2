package dump

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const (
	head  = `{"type":"holdfast","version":1,"next_sequence":"9223372036854775908","low_sequence":"9223372036854775807","next_queue":10}` + "\n"
	first = `{"type":"queue","id":1,"queue":"a"}` + "\n"
	seq8  = `"sequence":"9223372036854775808"`
	seq9  = `"sequence":"9223372036854775809"`
)

// packetLine is a packet of queue a.
func packetLine(fields string) string {
	return `{"type":"packet","queue":"a","priority":1,` + fields + "}\n"
}

func endLine(packets, queues int) string {
	return fmt.Sprintf(`{"type":"end","packets":%d,"queues":%d}`+"\n", packets, queues)
}

func TestBadDumpIsRefusedWithTheLineThatIsWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("dumps are read one after the other")
	}
	long := strings.Repeat("x", maxText+1)
	for name, c := range map[string]struct{ in, want string }{
		"two dumps":                  {head + endLine(0, 0) + head, "line 3: there is more after the end record"},
		"two headers":                {head + head, "line 2: a second header"},
		"no end":                     {head + first + packetLine(seq8), "cut short: after 1 packets of 1 queues"},
		"cut inside a line":          {head + first + packetLine(seq8)[:40], "line 3"},
		"wrong count":                {head + first + packetLine(seq8) + endLine(2, 1), "line 4: the end record counts 2 packets of 1 queues, but there are 1 of 1"},
		"wrong hash":                 {head + `{"type":"end","packets":0,"queues":0,"hash":"0000000000000000"}`, "line 2: the end record has the hash"},
		"hash of letters":            {head + `{"type":"end","packets":0,"queues":0,"hash":"zz00000000000000"}`, "the end record has the hash zz00000000000000"},
		"no JSON":                    {head + "hello\n", "line 2: at byte 1: invalid character 'h'"},
		"more on a line":             {head + strings.TrimSpace(first) + " 1\n", "line 2: at byte 36: expected nothing more on the line"},
		"array":                      {head + "[]\n", "line 2: expected an object, got array"},
		"no type":                    {head + `{"id":1,"queue":"a"}`, `line 2: field "type" is missing`},
		"other type":                 {head + `{"type":"claim"}`, `line 2: field "type": "claim" is not holdfast`},
		"type of other form":         {head + `{"type":1}`, `line 2: field "type": got a number, expected a string`},
		"unknown field":              {head + `{"type":"queue","id":1,"queue":"a","size":1}`, `line 2: unknown field "size"`},
		"unknown encoding":           {head + `{"type":"queue","id":1,"queue_base32":"a"}`, `line 2: unknown field "queue_base32"`},
		"number that is encoded":     {head + `{"type":"queue","id_base64":"AA==","queue":"a"}`, `unknown field "id_base64"`},
		"base64 that is none":        {head + first + packetLine(seq8+`,"key":{"base64":"!"}`), "line 3: illegal base64"},
		"object that is not base64":  {head + first + packetLine(seq8+`,"key":{"base64":"AA==","x":1}`), `line 3: field "key": got a object, expected a string or {"base64":"…"}`},
		"bytes that are a number":    {head + first + packetLine(seq8+`,"payload":1`), `line 3: field "payload": got a number, expected a string or {"base64":"…"}`},
		"tag that is a number":       {head + first + packetLine(seq8+`,"tags":{"a":1}`), "expected a string or"},
		"name that is a number":      {head + withSettings(`"dead_letter":1`), `field "dead_letter": expected a name`},
		"payload twice":              {head + first + packetLine(seq8+`,"payload":"a","payload_base64":"AA=="`), `line 3: field "payload" is there in two encodings`},
		"field of another type":      {head + `{"type":"queue","id":1,"queue":"a","payload":"a"}`, `line 2: a queue has no field "payload"`},
		"missing fields":             {head + `{"type":"queue"}`, `line 2: a queue must have the field "queue"`},
		"queue with an id as text":   {head + `{"type":"queue","id":"one","queue":"a"}`, "has the id one: expected 1 to 9"},
		"queue 0":                    {head + `{"type":"queue","id":0,"queue":"a"}`, "has the id 0"},
		"queue past the last":        {head + `{"type":"queue","id":10,"queue":"a"}`, "has the id 10: expected 1 to 9"},
		"queue number too large":     {head + `{"type":"queue","id":4294967296,"queue":"a"}`, "has the id 4294967296: expected 1 to 9"},
		"queues out of order":        {head + `{"type":"queue","id":2,"queue":"b"}` + "\n" + first, "line 3: queue \"a\" has the id 1, which does not follow"},
		"queue twice":                {head + first + `{"type":"queue","id":2,"queue":"a"}`, `line 3: two queues have the name "a"`},
		"queue name too long":        {head + `{"type":"queue","id":1,"queue":"` + long + `"}`, `line 2: field "queue" has 65536 bytes`},
		"unknown fields are none":    {head + `{"type":"queue","id":1,"queue":"a","unknown_fields":1,"unknown_base64":"wQ=="}`, "unknown is not the 1 fields"},
		"unknown fields miscounted":  {head + `{"type":"queue","id":1,"queue":"a","unknown_fields":9,"unknown_base64":"AsM="}`, "unknown is not the 9 fields"},
		"unknown fields with a name": {head + `{"type":"queue","id":1,"queue":"a","unknown_fields":1,"unknown_base64":"AcQBYg=="}`, "unknown is not"},
		"packet before its queue":    {head + packetLine(seq8), "line 2: a packet of queue \"a\": expected the record of the queue"},
		"packet of another queue":    {head + `{"type":"queue","id":1,"queue":"b"}` + "\n" + packetLine(seq8), `line 3: a packet of queue "a" after the record of queue "b"`},
		"packets out of order":       {head + first + packetLine(seq9) + packetLine(seq8), "line 4: the packet of priority 1 and sequence 9223372036854775808 does not follow"},
		"one sequence in two queues": {head + first + packetLine(seq8) + `{"type":"queue","id":2,"queue":"b"}` + "\n" +
			strings.Replace(packetLine(seq8), `"a"`, `"b"`, 1), "line 5: the packet has the sequence 9223372036854775808 and the identity"},
		"one identity for two packets": {head + first + packetLine(seq8) + packetLine(`"sequence":"9223372036854775809","identity":"9223372036854775808"`),
			"line 4: the packet has the sequence 9223372036854775809 and the identity 9223372036854775808, and another packet"},
		"packet twice":               {head + first + packetLine(seq8) + packetLine(seq8), "line 4"},
		"sequence past the marks":    {head + first + packetLine(`"sequence":"9223372036854775908"`), "line 3: the packet has the sequence 9223372036854775908"},
		"sequence too large":         {head + first + packetLine(`"sequence":"18446744073709551616"`), "from 0 to 18446744073709551615"},
		"sequence of zeros":          {head + first + packetLine(`"sequence":"09223372036854775808"`), "whole number"},
		"empty sequence":             {head + first + packetLine(`"sequence":""`), "whole number"},
		"priority below 0":           {head + first + `{"type":"packet","queue":"a","priority":-1,` + seq8 + "}", "whole number"},
		"priority that is a float":   {head + first + `{"type":"packet","queue":"a","priority":1.5,` + seq8 + "}", "whole number"},
		"time as text":               {head + first + packetLine(seq8+`,"expires":"1"`), "expected a whole number"},
		"time that is a float":       {head + first + packetLine(seq8+`,"expires":1e3`), "a whole number"},
		"key too long":               {head + first + packetLine(seq8+`,"key":"`+long+`"`), `line 3: field "key" has 65536 bytes: at most 65535`},
		"record too long":            {head + first + packetLine(seq8+`,"payload":"`+strings.Repeat("x", MaxRecord)+`"`), "line 3: the packet has a record of"},
		"line of many values":        {head + first + packetLine(seq8+`,"tags":[`+strings.Repeat("1,", maxShape/2)+`1]`), "line 3: the line has more than 1048576 bytes besides texts"},
		"not base64":                 {head + first + packetLine(seq8+`,"key_base64":"!"`), "line 3: illegal base64"},
		"not UTF-8":                  {head + first + packetLine(seq8+`,"key":"`+"\xff"+`"`), "not UTF-8"},
		"half a pair":                {head + first + packetLine(seq8+`,"key":"\ud800"`), "half a surrogate pair"},
		"escape that is none":        {head + first + packetLine(seq8+`,"key":"\x"`), "line 3: at byte 84: invalid character 'x' in string escape"},
		"control character":          {head + first + packetLine(seq8+`,"key":"`+"\x01"+`"`), "line 3: at byte 83: invalid character"},
		"state that is none":         {head + first + packetLine(seq8+`,"state":"lost"`), "the state \"lost\": expected ready, delayed, unselectable, claimed, dead or done"},
		"identity past the marks":    {head + first + packetLine(seq8+`,"identity":"9223372036854775908"`), "line 3: the packet has the identity 9223372036854775908"},
		"token past the marks":       {head + first + packetLine(seq8+`,"token":"9223372036854775908"`), "the token 9223372036854775908: expected"},
		"origin without an id":       {head + first + packetLine(seq8+`,"origin":"b"`), `the origin "b" and the origin_id 0`},
		"origin past the last":       {head + first + packetLine(seq8+`,"origin":"b","origin_id":10`), "the origin_id 10"},
		"percent of 256":             {head + first + packetLine(seq8+`,"progress":256`), "not in percent"},
		"progress without percent":   {head + first + packetLine(seq8+`,"progress_text":"a"`), "not in percent"},
		"reason too long":            {head + first + packetLine(seq8+`,"reason":"`+long+`"`), `line 3: field "reason" has 65536 bytes`},
		"claimed without a token":    {head + first + packetLine(seq8+`,"state":"claimed","attempts":1`), "line 3: the packet is claimed, with the token 0"},
		"claimed without an attempt": {head + first + packetLine(seq8+`,"state":"claimed","token":"9223372036854775810"`), "after 0 attempts"},
		"cancelled and not claimed":  {head + first + packetLine(seq8+`,"state":"ready","cancelled":true`), "cancelled and not claimed"},
		"done for ever":              {head + first + packetLine(seq8+`,"state":"done"`), "is done and never expires"},
		"time before all times":      {head + first + packetLine(seq8+`,"until":-1`), "waits until -1"},
		"lease that never ends":      {head + `{"type":"queue","id":1,"queue":"a","settings":{"lease":9223372036854775807}}`, `field "lease" is 9223372036854775807: expected a whole number from 0 to 9007199254740992`},
		"name of 65,536 bytes":       {head + `{"type":"queue","id":1,"queue":"a","settings":{"dead_letter":"` + long + `"}}`, `field "dead_letter": expected a name of at most 65535 bytes`},
		"settings as a number":       {head + `{"type":"queue","id":1,"queue":"a","settings":1}`, `field "settings": got a number, expected an object`},
		"lease below 0":              {head + `{"type":"queue","id":1,"queue":"a","settings":{"lease":-1}}`, `line 2: field "lease" is -1: expected a whole number from 0 to`},
		"setting of a later version": {head + `{"type":"queue","id":1,"queue":"a","settings":{"max_tries":1}}`, `unknown field "max_tries"`},
		"bound that never ends":      {head + withSettings(`"bound":9007199254740993`), `field "bound" is 9007199254740993: expected a whole number from 0 to 9007199254740992`},
		"bytes without end":          {head + withSettings(`"bound_bytes":18446744073709551615`), `line 2: field "bound_bytes" is 18446744073709551615: expected a whole number from 0 to`},
		"bound below 0":              {head + withSettings(`"bound":-1`), `field "bound" is -1: expected a whole number from 0 to`},
		"full of another word":       {head + withSettings(`"full":"wait"`), `field "full" is "wait": expected one of reject, block, drop`},
		"switch as text":             {head + withSettings(`"pause_in":"yes"`), `field "pause_in" is yes: expected true or false`},
		"enum as text":               {head + withSettings(`"enum":"low"`), `field "enum": expected an array with an array of texts`},
		"enum without a tag":         {head + withSettings(`"enum":[[]]`), "enum: expected a tag that is not empty"},
		"enum without values":        {head + withSettings(`"enum":[["class"]]`), `enum: expected values of the tag "class", got none`},
		"enum with an empty value":   {head + withSettings(`"enum":[["class","low",""]]`), "enum: expected values that are not empty"},
		"enum with a value twice":    {head + withSettings(`"enum_base64":[["YQ==","Yg==","Yg=="]]`), `enum: expected each value once, got "b" twice`},
		"enum with a tag twice":      {head + withSettings(`"enum":[["a","b"],["a","c"]]`), `got "a" behind "a"`},
		"enum out of order":          {head + withSettings(`"enum":[["b","b"],["a","c"]]`), `enum: expected tags in the order of their bytes, each once, got "a" behind "b"`},
		"enum with long values":      {head + withSettings(`"enum":[["a","`+long+`"]]`), "at most 16384 bytes together"},
		"enum with too many tags":    {head + withSettings(`"enum":[`+strings.Repeat(`["a","b"],`, content.MaxOrders)+`["a","b"]]`), "enum: expected at most 16 tags, got 17"},
		"enum twice":                 {head + withSettings(`"enum":[["a","b"]],"enum_base64":[["Yg==","Yg=="]]`), `line 2: field "enum" is there in two encodings`},
		"tags twice":                 {head + first + packetLine(seq8+`,"tags":{"a":"1"},"tags_base64":["Yg==","Yg=="]`), `line 3: field "tags" is there in two encodings`},
		"until what":                 {head + first + packetLine(seq8+`,"unique":"u","unique_until":"end"`), `line 3: the packet has its unique id until "end": expected claim, beside an id`},
		"until without an id":        {head + first + packetLine(seq8+`,"unique_until":"claim"`), `line 3: the packet has its unique id until "claim": expected claim, beside an id`},
		"unique id too long":         {head + first + packetLine(seq8+`,"unique":"`+long[:256]+`"`), `line 3: field "unique" has 256 bytes: at most 255`},
		"half a tag":                 {head + first + packetLine(seq8+`,"tags_base64":["YQ=="]`), "names and values"},
		"tags as text":               {head + first + packetLine(seq8+`,"tags":"a"`), "expected an object"},
		"attempts too many":          {head + first + packetLine(seq8+`,"attempts":4294967296`), "4294967296 attempts: expected 0 to 4294967295"},
		"version 0":                  {strings.Replace(head, `version":1`, `version":0`, 1), "line 1: the dump has version 0"},
		"marks the wrong way":        {strings.Replace(head, "908", "807", 1), "line 1: the header's low_sequence"},
		"marks out of range":         {strings.Replace(head, `"9223372036854775908"`, `"18446744073709551615"`, 1), "out of range"},
		"no next queue":              {strings.Replace(head, `next_queue":10`, `next_queue":0`, 1), "line 1: the header's next_queue is 0"},
		"header with odd payload":    {strings.Replace(head, `}`, `,"payload":"some"}`, 1), "line 1: the payload field"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.HalfReader(strings.NewReader(c.in))} {
				_, err := Read(t.Context(), r, nil, nil)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error that says %q", err, c.want)
				}
			}
		})
	}
}

// withSettings is the record of a queue with some.
func withSettings(fields string) string {
	return `{"type":"queue","id":1,"queue":"a","settings":{` + fields + `}}`
}

func TestASettingThatIsNotThereIsItsZeroValue(t *testing.T) {
	const end = "\n" + `{"type":"end","queues":1,"packets":0}`
	for fields, want := range map[string]content.Settings{
		``: {},
		`"max_attempts":5,"lease":30000,"backoff_min":1000,"backoff_max":600000,"dead_letter":"dead","retain":7`: {
			MaxAttempts: 5, Lease: 30_000, BackoffMin: 1000, BackoffMax: 600_000, DeadLetter: []byte("dead"), Retain: 7,
		},
		`"full":"reject","bound":0,"pause_in":false,"closed":null,"enum":[]`: {},
		`"dead_letter":{"base64":"/wA="},"enum":[["a",{"base64":"/w=="}]]`:   {DeadLetter: []byte{0xff, 0}, Orders: []content.Order{{Tag: "a", Values: []string{"\xff"}}}},
		`"full":"block","enum_base64":[["YQ==","Yg=="]]`:                     {Full: content.FullBlock, Orders: []content.Order{{Tag: "a", Values: []string{"b"}}}},
	} {
		read := 0
		_, err := Read(t.Context(), strings.NewReader(head+withSettings(fields)+end), func(r *Record) error {
			if r.Type != TypeQueue {
				return nil
			}
			q := r.Definition()
			if read++; !reflect.DeepEqual(*q.Settings, want) || q.Counters != (content.Counters{}) {
				t.Errorf("%s is read as %+v, %+v", fields, *q.Settings, q.Counters)
			}
			return nil
		}, nil)
		if err != nil || read != 1 {
			t.Errorf("%s: %d queues, %v", fields, read, err)
		}
	}
}

func TestJSONOfOtherProgramsIsRead(t *testing.T) {
	in := "  \n" // only behind the header
	in = head + in + "\t{ \"queue\" : \"\\u0061\\/\", \"id\":1 , \"type\":\"queue\" }\r\n\n" +
		`{"state":"ready","payload":"\ud83d\ude00\b\f\n\r\t\"\\","sequence":9223372036854775808,"queue":"a/","priority":7,"type":"packet","id":"whatever","tags":{"z":"1","a":"2"}}` + "\n" +
		`{"type":"end","queues":1,"packets":1}` // and no line feed
	var got content.Packet
	report, err := Read(t.Context(), iotest.OneByteReader(strings.NewReader(in)), func(r *Record) error {
		if r.Type != TypePacket {
			return nil
		}
		id, p, _ := r.Packet()
		if string(r.Queue) != "a/" || id != (content.PacketID{Queue: 1, Priority: 7, Seq: 1 << 63}) {
			t.Errorf("packet %v of queue %q", id, r.Queue)
		}
		got = *p
		return nil
	}, nil)
	if err != nil || report.Packets != 1 {
		t.Fatal(report, err)
	}
	if want := "😀\b\f\n\r\t\"\\"; string(got.Payload) != want {
		t.Errorf("payload %q, want %q", got.Payload, want)
	}
	if fmt.Sprint(got.Tags) != "[{a 2} {z 1}]" {
		t.Errorf("tags %v are not in order", got.Tags)
	}
}

func TestOfAFieldThatIsThereTwiceTheLastCountsAndNullIsNone(t *testing.T) {
	in := head + `{"type":"queue","id":2,"id":1,"queue":"a"}` + "\n" + packetLine(seq8+`,"key":null,"tags":{"a":"1","a":"2"}`) + endLine(1, 1)
	_, err := Read(t.Context(), strings.NewReader(in), func(r *Record) error {
		if r.Type != TypePacket {
			return nil
		}
		if id, p, _ := r.Packet(); id.Queue != 1 || p.Key != nil || fmt.Sprint(p.Tags) != "[{a 2}]" {
			t.Errorf("packet %v, %+v", id, p)
		}
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
}

func TestExampleOfTheDocumentIsADump(t *testing.T) {
	text, err := os.ReadFile("DUMP.md")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	for line := range strings.Lines(string(text)) {
		if object, ok := strings.CutPrefix(line, "    {"); ok {
			example.WriteString("{" + object)
		}
	}
	if report, err := Read(t.Context(), strings.NewReader(example.String()), nil, nil); err != nil || report.Packets != 2 {
		t.Errorf("%+v %v", report, err)
	}
}

func TestDumpOfALaterVersionIsRefused(t *testing.T) {
	later := strings.Replace(head, `version":1`, `version":4,"more":[{"a":[1,true,null,"x"]}]`, 1)
	nothingElse := strings.Replace(head, `version":1`, `version":4`, 1)
	inMsgpack := "\x83\xa4type\xa8holdfast\xa7version\x04\xa4more\x91\x80"
	for _, in := range []string{later, nothingElse, inMsgpack} {
		if _, err := Read(t.Context(), strings.NewReader(in), nil, nil); err == nil || !strings.Contains(err.Error(), "1: the dump has version 4") {
			t.Errorf("got %v, want its version", err)
		}
	}
}

func TestRecordOfMsgpackThatIsNoMapIsRefused(t *testing.T) {
	empty, _ := dumpOf(t, &recoverytest.Fake{Counted: recoverytest.OneOfEach().Counted}, Options{Format: Msgpack})
	header := empty[:bytes.Index(empty, []byte("\xa4type\xa3end"))-1]
	for name, record := range map[string]string{"array": "\x93\xa5queue\x01\xc4\x01a", "nil": "\xc0", "number": "{", "nothing known": "\xc1"} {
		in := io.MultiReader(bytes.NewReader(header), strings.NewReader(record))
		if _, err := Read(t.Context(), in, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "record 2: ") {
			t.Errorf("%s: got %v, want an error at record 2", name, err)
		}
	}
}

func TestRecordsOfMsgpackThatTheLibraryWouldNotBearAreRefused(t *testing.T) {
	whole, _ := dumpOf(t, &recoverytest.Fake{Counted: recoverytest.OneOfEach().Counted}, Options{Format: Msgpack})
	header := whole[:bytes.Index(whole, []byte("\xa4type\xa3end"))-1]
	for name, fields := range map[string]string{
		"an id twice, first a text":             "\xa2id\xa1a\xa2id\xa1a\x80\x80",
		"the length of a map in an extension":   "\xa8settings\xd7\x01\xdf\xff\xff\xff\xff\xdf\xff\xff\xa2id\x01",
		"settings in an extension of the times": "\xa8settings\xc7\x05\xff\xdf\xff\xff\xff\xff\xa2id\x01",
	} {
		in := io.MultiReader(bytes.NewReader(header), strings.NewReader("\x84\xa4type\xa5queue\xa5queue\xa1a"+fields))
		if _, err := Read(t.Context(), in, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "record 2: ") {
			t.Errorf("%s: got %v, want an error at record 2", name, err)
		}
	}
}

func TestNumbersOfMsgpackAreNeverCutOff(t *testing.T) {
	whole, _ := dumpOf(t, &recoverytest.Fake{Counted: recoverytest.OneOfEach().Counted}, Options{Format: Msgpack})
	header := whole[:bytes.Index(whole, []byte("\xa4type\xa3end"))-1]
	record := func(fields map[string]any) []byte {
		b, err := msgpack.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	queue := record(map[string]any{"type": "queue", "id": 1, "queue": []byte("a")})
	for name, change := range map[string]map[string]any{
		"expiry":            {"expires": uint64(1<<63 + 7)},
		"not before":        {"not_before": uint64(1 << 63)},
		"negative priority": {"priority": -1},
		"long priority":     {"priority": uint64(1<<32 + 5)},
		"attempts":          {"attempts": uint64(1<<32 + 7)},
		"sequence":          {"sequence": -1},
	} {
		packet := map[string]any{"type": "packet", "queue": []byte("a"), "priority": 1, "sequence": uint64(1 << 63), "state": "ready"}
		read := func() error {
			in := io.MultiReader(bytes.NewReader(header), bytes.NewReader(queue), bytes.NewReader(record(packet)))
			_, err := Read(t.Context(), in, nil, nil)
			return err
		}
		if err := read(); err == nil || !strings.Contains(err.Error(), "cut short: after 1 packets") {
			t.Fatalf("%v, want a packet that is read", err)
		}
		for field, value := range change {
			packet[field] = value
		}
		if err := read(); err == nil || !strings.HasPrefix(err.Error(), "record 3: ") {
			t.Errorf("%s: got %v, want an error at record 3", name, err)
		}
	}
	for _, id := range []any{-1, uint64(1<<32 + 1)} {
		in := io.MultiReader(bytes.NewReader(header), bytes.NewReader(record(map[string]any{"type": "queue", "id": id, "queue": []byte("a")})))
		if _, err := Read(t.Context(), in, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "record 2: ") {
			t.Errorf("queue %v: got %v, want an error at record 2", id, err)
		}
	}
}

func TestErrorOfTheReaderIsReturned(t *testing.T) {
	broken := errors.New("the pipe is gone")
	dump, _ := dumpOf(t, recoverytest.Many(5000), Options{})
	for _, n := range []int{0, 10, len(head) + 5, len(dump) / 2, len(dump)} {
		in := io.MultiReader(bytes.NewReader(dump[:n]), iotest.ErrReader(broken))
		if _, err := Read(t.Context(), in, nil, nil); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: got %v", n, err)
		}
	}
}

func TestDumpThatIsCutOrChangedIsNeverTakenForWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of dumps are read one after the other")
	}
	for _, format := range []Format{JSONL, Msgpack} {
		src := recoverytest.OneOfEach()
		src.Stored = src.Stored[:len(src.Stored)-1] // the last is long, and no other in its kind
		dump, _ := dumpOf(t, src, Options{Format: format})
		for n := range len(dump) - 1 { // the last byte of JSON lines is a line feed that may be missing
			if _, err := Read(t.Context(), bytes.NewReader(dump[:n]), nil, nil); err == nil {
				t.Fatalf("%v: %d of %d bytes are taken for a dump", format, n, len(dump))
			}
		}
		for i := range dump {
			changed := bytes.Clone(dump)
			changed[i] ^= 0x01
			if _, err := Read(t.Context(), bytes.NewReader(changed), nil, nil); err == nil && !harmless(dump, changed) {
				t.Fatalf("%v: byte %d of %d is changed from %q to %q, and nobody sees it", format, i, len(dump), dump[i], changed[i])
			}
		}
	}
}

// harmless reports whether two dumps differ only in the case of a digit of the hash.
func harmless(a, b []byte) bool { return bytes.EqualFold(a, b) }

// anyPacket draws a packet of any shape.
func anyPacket(t *rapid.T) content.Packet {
	odd := rapid.OneOf(
		rapid.SliceOf(rapid.Byte()),
		rapid.Custom(func(t *rapid.T) []byte { return []byte(rapid.String().Draw(t, "text")) }),
		rapid.SampledFrom([][]byte{{}, {0}, []byte("\"\\/\b\f\n\r\t"), []byte("\u2028\u2029\ufffd\ufeff"), []byte("\xed\xa0\x80"), []byte("\xc0\x80"), []byte("<&>")}),
	)
	p := content.Packet{
		Payload:    odd.Draw(t, "payload"),
		Expiry:     rapid.SampledFrom([]int64{0, recoverytest.Later + 1, math.MaxInt64}).Draw(t, "expiry"),
		NotBefore:  rapid.SampledFrom([]int64{0, 1, recoverytest.Later, recoverytest.Later + 1, math.MinInt64}).Draw(t, "not before"),
		EnqueuedAt: rapid.Int64().Draw(t, "enqueued at"),
		Attempts:   rapid.Uint32().Draw(t, "attempts"),
		Producer:   string(odd.Draw(t, "producer")),
		Unique:     odd.Draw(t, "unique"),
	}
	p.Unique = p.Unique[:min(len(p.Unique), content.MaxUnique)]
	p.UntilClaim = len(p.Unique) > 0 && rapid.Bool().Draw(t, "until claim")
	if rapid.Bool().Draw(t, "has a key") {
		p.Key = append([]byte{}, odd.Draw(t, "key")...)
	}
	for range rapid.IntRange(0, 3).Draw(t, "tags") {
		p.Tags = append(p.Tags, content.Tag{Name: string(odd.Draw(t, "name")), Value: string(odd.Draw(t, "value"))})
	}
	for i := range p.Tags { // in the order of their names, as stored
		for j := i; j > 0 && p.Tags[j-1].Name > p.Tags[j].Name; j-- {
			p.Tags[j-1], p.Tags[j] = p.Tags[j], p.Tags[j-1]
		}
	}
	return p
}

// source draws what a store holds.
func anySource(t *rapid.T) *recoverytest.Fake {
	s := &recoverytest.Fake{Counted: content.Control{Marks: content.Marks{NextSeq: 1<<63 + 1000, LowSeq: 1<<63 - 1, NextQueue: 100}}}
	seq := uint64(1 << 63)
	for i := range rapid.IntRange(0, 3).Draw(t, "queues") {
		id := uint32(i*7 + 1)
		name := append([]byte{byte(i)}, rapid.SliceOf(rapid.Byte()).Draw(t, "name")...)
		s.Defined = append(s.Defined, content.Queue{ID: id, Database: uint8(rapid.IntRange(0, 15).Draw(t, "database")), Name: name})
		priority := rapid.Uint32Range(0, 3).Draw(t, "priority")
		for range rapid.IntRange(0, 4).Draw(t, "packets") {
			seq++
			priority += rapid.SampledFrom([]uint32{0, 1, 1 << 30}).Draw(t, "step") % (math.MaxUint32 - priority)
			s.Put(id, priority, seq, anyPacket(t))
		}
	}
	return s
}

// tryAny gives some of the packets delivery states. It returns them by their identity.
func tryAny(t *rapid.T, src *recoverytest.Fake) map[uint64]*Delivery {
	tried := make(map[uint64]*Delivery)
	name := rapid.SliceOfN(rapid.Byte(), 1, 5)
	for i := range src.Stored {
		if p := &src.Stored[i]; rapid.Bool().Draw(t, "tried") {
			d := &Delivery{Delivery: content.Delivery{
				Identity: p.ID.Seq, Expiry: p.Packet.Expiry, State: content.State(rapid.Uint8Range(1, 5).Draw(t, "state")),
				Until: rapid.Int64Min(0).Draw(t, "until"), Attempts: rapid.Uint32().Draw(t, "attempts"), Token: src.Counted.NextSeq - 1,
				FirstClaim: rapid.Int64().Draw(t, "first"), LastClaim: rapid.Int64().Draw(t, "last"), Consumer: string(name.Draw(t, "consumer")),
			}}
			if d.State <= content.Delayed {
				d.State = content.Ready + content.State(min(d.Until, 1))
			}
			if d.State == content.Claimed {
				d.Attempts, d.Cancelled = max(d.Attempts, 1), rapid.Bool().Draw(t, "cancelled")
			} else if d.State == content.Done && d.Expiry == 0 {
				d.State = content.Dead
			}
			p.Packet.Attempts = 0
			p.Packet.NotBefore = min(p.Packet.NotBefore, recoverytest.Later) // QRUN has a test of its own
			if rapid.Bool().Draw(t, "moved") {
				d.Origin, d.OriginName = src.Defined[0].ID, src.Defined[0].Name
				p.Packet.Identity = p.ID.Seq + 500
				d.Identity = p.Packet.Identity
			}
			if rapid.Bool().Draw(t, "notes") {
				d.Reason, d.Progress = string(name.Draw(t, "reason")), string(name.Draw(t, "progress"))
			}
			src.Tried = append(src.Tried, recoverytest.Delivery{Delivery: d.Delivery})
			tried[d.Identity] = d
		}
	}
	slices.SortFunc(src.Tried, func(a, b recoverytest.Delivery) int { return cmp.Compare(a.Identity, b.Identity) })
	return tried
}

// shown is a delivery state as a test compares it.
func shown(d *Delivery) string {
	if d == nil {
		return "none"
	}
	return fmt.Sprintf("%+v %q", d.Delivery, d.OriginName)
}

func TestEveryDumpIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := anySource(t)
		tried := tryAny(t, src)
		for _, o := range []Options{{}, {Payload: Text}, {Payload: Base64}, {Format: Msgpack}} {
			var out bytes.Buffer
			o.Now = recoverytest.Later
			if _, err := Dump(src, &out, o); err != nil {
				t.Fatal(err)
			}
			got := &recoverytest.Fake{Counted: src.Counted}
			_, err := Read(t.Context(), bytes.NewReader(out.Bytes()), func(r *Record) error {
				if r.Type != TypePacket {
					return nil
				}
				id, p, d := r.Packet()
				if want := tried[cmp.Or(p.Identity, id.Seq)]; shown(d) != shown(want) {
					return fmt.Errorf("the delivery state is %+v, want %+v", shown(d), shown(want))
				}
				got.Stored = append(got.Stored, recoverytest.Packet{ID: id, Rec: content.AppendRecord(nil, p)})
				return nil
			}, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			if len(got.Stored) != len(src.Stored) {
				t.Fatalf("%d packets of %d", len(got.Stored), len(src.Stored))
			}
			for i := range got.Stored {
				if want := content.AppendRecord(nil, &src.Stored[i].Packet); !bytes.Equal(got.Stored[i].Rec, want) || got.Stored[i].ID != src.Stored[i].ID {
					t.Fatalf("packet %v: %x, want %v: %x", got.Stored[i].ID, got.Stored[i].Rec, src.Stored[i].ID, want)
				}
			}
		}
	})
}

func encoded(t *rapid.T, f Format, r Record) []byte {
	e := newEncoder(f, Auto)
	if err := e.encode(&r); err != nil {
		t.Fatal(err)
	}
	return e.Bytes()
}

func TestOtherProgramsReadWhatADumpSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPacket(t)
		id := content.PacketID{Queue: 1, Priority: 2, Seq: rapid.Uint64Min(1).Draw(t, "seq")}
		q := &content.Queue{ID: 1, Name: rapid.SliceOf(rapid.Byte()).Draw(t, "queue")}
		var object struct {
			Queue, Key, Payload, Sequence, ID, Tags any
			NotBefore                               int64 `json:"not_before"`
		}
		line := encoded(t, JSONL, packetRecord(q.Name, id, &p, nil, recoverytest.Later))
		if err := json.Unmarshal(line, &object); err != nil || !utf8.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("%v: %s", err, line)
		}
		same := func(want []byte, value any) bool {
			text, isText := value.(string)
			if other, ok := value.(map[string]any); ok && len(other) == 1 {
				b, err := base64.StdEncoding.DecodeString(other["base64"].(string))
				text, isText = string(b), err == nil
			}
			return isText && text == string(want) || value == nil && len(want) == 0
		}
		if !same(p.Payload, object.Payload) || !same(p.Key, object.Key) || (p.Key == nil) != (object.Key == nil) || !same(q.Name, object.Queue) ||
			object.Sequence != fmt.Sprint(id.Seq) || object.ID != id.String() || object.NotBefore != p.NotBefore {
			t.Fatalf("%s is read as %+v", line, object)
		}
		tags, _ := object.Tags.([]any) // an object where names do not repeat
		byName, _ := object.Tags.(map[string]any)
		for i, tag := range p.Tags {
			if byName != nil && !same([]byte(tag.Value), byName[tag.Name]) || tags != nil && !(same([]byte(tag.Name), tags[2*i]) && same([]byte(tag.Value), tags[2*i+1])) {
				t.Fatalf("%s has other tags than %q", line, p.Tags)
			}
		}
		if len(tags)/2+len(byName) != len(p.Tags) {
			t.Fatalf("%s has other tags than %q", line, p.Tags)
		}
		var fields map[string]any
		if err := msgpack.Unmarshal(encoded(t, Msgpack, packetRecord(q.Name, id, &p, nil, recoverytest.Later)), &fields); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(fields["queue"].([]byte), q.Name) || fields["id"] != id.String() || fmt.Sprint(fields["sequence"]) != fmt.Sprint(id.Seq) {
			t.Fatalf("read as %v", fields)
		}
	})
}

// FuzzReadDump reads anything without harm, and what it takes as a line of JSON is JSON.
func FuzzReadDump(f *testing.F) {
	for _, o := range []Options{{}, {Format: Msgpack}} {
		dump, _ := dumpOf(f, recoverytest.OneOfEach(), o)
		f.Add(dump, 100)
	}
	f.Fuzz(func(t *testing.T, in []byte, split int) {
		split = max(0, min(split, len(in)))
		r := io.MultiReader(bytes.NewReader(in[:split]), bytes.NewReader(in[split:]))
		if _, err := Read(t.Context(), r, nil, nil); err != nil || in[0] != '{' {
			return
		}
		for _, line := range bytes.Split(in, []byte{'\n'}) {
			if line = bytes.Trim(line, " \t\r"); len(line) > 0 && !json.Valid(line) {
				t.Errorf("taken for JSON: %q", line)
			}
		}
	})
}

func TestAnOlderDumpOfVersion3HoldsWhatOneOfTodayHolds(t *testing.T) {
	for _, name := range []string{"version3.jsonl", "version3-auto.jsonl", "version3-base64.jsonl", "version3.msgpack"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		today, _ := dumpOf(t, recoverytest.OneOfEach(), Options{})
		if then, now := contentsOf(t, text), contentsOf(t, today); !slices.Equal(then, now) {
			t.Errorf("%s: got\n%q\nwant\n%q", name, then, now)
		}
	}
}

// contentsOf lists all that a dump holds.
func contentsOf(t *testing.T, text []byte) (all []string) {
	add := func(format string, args ...any) error {
		all = append(all, fmt.Sprintf(format, args...))
		return nil
	}
	_, err := Read(t.Context(), bytes.NewReader(text), func(r *Record) error {
		switch r.Type {
		case TypeHeader:
			return add("%+v %s", r.Marks(), r.Payload)
		case TypeQueue:
			q := r.Definition()
			settings := q.Settings
			q.Settings = nil
			return add("%+v %+v", q, settings)
		case TypeWindow:
			return add("%+v", r.Window())
		case TypePacket:
			id, p, d := r.Packet()
			return add("%v %x %s", id, content.AppendRecord(nil, p), shown(d))
		case TypeString, TypeHash:
			return add("%+v", r.Head())
		case TypeField:
			return add("%s %+v", r.Hash, r.Field())
		}
		return nil
	}, nil)
	if err != nil {
		t.Error(err)
	}
	return all
}

func TestADumpOfVersion2IsRead(t *testing.T) {
	for _, name := range []string{"version2.jsonl", "version2.msgpack"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		attempts := uint32(0)
		report, err := Read(t.Context(), bytes.NewReader(text), func(r *Record) error {
			if r.Type != TypePacket {
				return nil
			}
			id, p, d := r.Packet()
			if attempts += p.Attempts; d != nil {
				t.Errorf("%s: packet %v has the delivery state %+v", name, id, d)
			}
			return nil
		}, nil)
		if err != nil || report.Packets != 8 || attempts != 3 {
			t.Errorf("%s: %+v, %d attempts, %v", name, report, attempts, err)
		}
	}
}
