package admin

import (
	"fmt"
	"net/url"
)

// Formats of a backup: dumps that can be loaded, and the files of the data folder.
const (
	FormatMsgpack = "msgpack"
	FormatJSONL   = "jsonl"
	FormatTar     = "tar"
)

// contentTypes has one for each format.
var contentTypes = map[string]string{
	FormatMsgpack: "application/msgpack", FormatJSONL: "application/x-ndjson", FormatTar: "application/x-tar",
}

// Request says what a backup is to hold.
type Request struct {
	Format string   // one of the formats
	Queues []string // globs: a queue that one of them matches is included; all are if there is none
	// May says whether the user may see what has a name; nil: everything. The globs of rights differ
	// from these in what they say of bytes that are no text.
	May func(name []byte) bool
}

// packetsHeader says about how many packets a backup holds.
const packetsHeader = "Holdfast-Packets"

// parseRequest parses the query of a request for a backup.
func parseRequest(query string) (Request, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return Request{}, fmt.Errorf("query cannot be parsed: expected format=%s|%s|%s and queue=GLOB: %w", FormatMsgpack, FormatJSONL, FormatTar, err)
	}
	r := Request{Format: FormatMsgpack}
	for name, given := range values {
		switch name {
		case "format":
			if len(given) != 1 || contentTypes[given[0]] == "" {
				return Request{}, fmt.Errorf("format %q: expected %s, %s or %s, once", given, FormatMsgpack, FormatJSONL, FormatTar)
			}
			r.Format = given[0]
		case "queue":
			r.Queues = given
		default:
			return Request{}, fmt.Errorf("unknown parameter %q: expected format and queue", name)
		}
	}
	if r.Format == FormatTar && len(r.Queues) > 0 {
		return Request{}, fmt.Errorf("format %s holds everything: leave queue out, or ask for another format", FormatTar)
	}
	return r, nil
}

// query returns what parseRequest parses.
func (r *Request) query() string {
	values := url.Values{"format": {r.Format}}
	if len(r.Queues) > 0 {
		values["queue"] = r.Queues
	}
	return values.Encode()
}
