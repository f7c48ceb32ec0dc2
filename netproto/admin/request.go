package admin

import (
	"fmt"
	"net/url"
)

// Forms of a backup: those of a dump that can be loaded.
const (
	FormatMsgpack = "msgpack"
	FormatJSONL   = "jsonl"
)

// Request says what a backup is to hold.
type Request struct {
	Format string   // FormatMsgpack or FormatJSONL
	Queues []string // globs; a queue that one of them matches is in, and all are when there is none
}

// packetsHeader tells about how many packets a backup holds.
const packetsHeader = "Holdfast-Packets"

func (r *Request) contentType() string {
	if r.Format == FormatJSONL {
		return "application/x-ndjson"
	}
	return "application/msgpack"
}

// parseRequest reads the query of a backup's address.
func parseRequest(query string) (Request, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return Request{}, fmt.Errorf("the query cannot be read, expected format=%s|%s and queue=GLOB: %w", FormatMsgpack, FormatJSONL, err)
	}
	r := Request{Format: FormatMsgpack}
	for name, given := range values {
		switch name {
		case "format":
			if len(given) != 1 || given[0] != FormatMsgpack && given[0] != FormatJSONL {
				return Request{}, fmt.Errorf("format %q is not known: expected %s or %s, once", given, FormatMsgpack, FormatJSONL)
			}
			r.Format = given[0]
		case "queue":
			r.Queues = given
		default:
			return Request{}, fmt.Errorf("parameter %q is not known: expected format and queue", name)
		}
	}
	return r, nil
}

// query is what parseRequest reads.
func (r *Request) query() string {
	values := url.Values{"format": {r.Format}}
	if len(r.Queues) > 0 {
		values["queue"] = r.Queues
	}
	return values.Encode()
}
