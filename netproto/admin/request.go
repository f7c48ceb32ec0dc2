package admin

import (
	"fmt"
	"net/url"
)

// Formats of a backup: those of dumps that can be loaded.
const (
	FormatMsgpack = "msgpack"
	FormatJSONL   = "jsonl"
)

// Request says what a backup is to hold.
type Request struct {
	Format string   // FormatMsgpack or FormatJSONL
	Queues []string // globs: a queue that one of them matches is included; all are if there is none
}

// packetsHeader says about how many packets a backup holds.
const packetsHeader = "Holdfast-Packets"

func (r *Request) contentType() string {
	if r.Format == FormatJSONL {
		return "application/x-ndjson"
	}
	return "application/msgpack"
}

// parseRequest parses the query of a request for a backup.
func parseRequest(query string) (Request, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return Request{}, fmt.Errorf("query cannot be parsed: expected format=%s|%s and queue=GLOB: %w", FormatMsgpack, FormatJSONL, err)
	}
	r := Request{Format: FormatMsgpack}
	for name, given := range values {
		switch name {
		case "format":
			if len(given) != 1 || given[0] != FormatMsgpack && given[0] != FormatJSONL {
				return Request{}, fmt.Errorf("format %q: expected %s or %s, once", given, FormatMsgpack, FormatJSONL)
			}
			r.Format = given[0]
		case "queue":
			r.Queues = given
		default:
			return Request{}, fmt.Errorf("unknown parameter %q: expected format and queue", name)
		}
	}
	return r, nil
}

// query is what parseRequest parses.
func (r *Request) query() string {
	values := url.Values{"format": {r.Format}}
	if len(r.Queues) > 0 {
		values["queue"] = r.Queues
	}
	return values.Encode()
}
