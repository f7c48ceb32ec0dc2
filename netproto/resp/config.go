package resp

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

func configCommands() []command {
	return []command{{name: "config", arity: -2, flags: flagLocal | flagAdmin, subs: []command{
		{name: "config|get", flags: flagLocal | flagAdmin, run: configGet},
		{name: "config|resetstat", flags: flagLocal | flagAdmin, right: access.Operate, run: configResetStat},
	}}}
}

// settings are what clients ask about. The first are as it is here. The others steer what Redis
// does inside, and have its defaults.
var settings = map[string]string{
	"appendonly":             "yes",
	"bind":                   "",
	"cluster-enabled":        "no",
	"databases":              "16",
	"dbfilename":             "",
	"dir":                    "",
	"maxmemory":              "0",
	"maxmemory-policy":       "noeviction",
	"notify-keyspace-events": "",
	"proto-max-bulk-len":     strconv.Itoa(wire.MaxArg), // New says what it is
	"requirepass":            "",                        // nobody is told
	"save":                   "",
	"timeout":                "0",

	"active-expire-effort":       "1",
	"activerehashing":            "yes",
	"client-output-buffer-limit": "normal 0 0 0 pubsub " + strconv.Itoa(maxUnsent) + " 0 0",
	"hash-max-listpack-entries":  "512",
	"hash-max-listpack-value":    "64",
	"hash-max-ziplist-entries":   "512",
	"hash-max-ziplist-value":     "64",
	"hz":                         "10",
	"latency-monitor-threshold":  "0",
	"latency-tracking":           "no",
	"lazyfree-lazy-expire":       "no",
	"lazyfree-lazy-server-del":   "no",
	"lazyfree-lazy-user-del":     "no",
	"lazyfree-lazy-user-flush":   "no",
	"lfu-decay-time":             "1",
	"lfu-log-factor":             "10",
	"list-compress-depth":        "0",
	"list-max-listpack-size":     "-2",
	"list-max-ziplist-size":      "-2",
	"lua-time-limit":             "5000",
	"maxmemory-samples":          "5",
	"slowlog-log-slower-than":    "-1",
	"slowlog-max-len":            "128",
}

func configGet(s *session, _ *broker.Tx, args [][]byte) error {
	found := make(map[string]string)
	for _, pattern := range args[2:] {
		g := patternArg(bytes.ToLower(pattern))
		s.steps -= 1000 // dozens of names
		for name, value := range s.protocol.settings {
			if g.Match([]byte(name), &s.steps) {
				found[name] = value
			}
		}
	}
	if s.steps < 0 {
		return failure(errCostly)
	}
	s.mapHeader(len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		s.bulkString(name, found[name])
	}
	return nil
}

func configResetStat(s *session, _ *broker.Tx, _ [][]byte) error {
	s.protocol.requests = 0
	return s.ok()
}
