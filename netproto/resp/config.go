package resp

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func configCommands() []command {
	return []command{{name: "config", arity: -2, flags: flagLocal | flagAdmin, subs: []command{
		{name: "config|get", arity: -3, flags: flagLocal | flagAdmin, run: configGet},
		{name: "config|set", arity: -4, flags: flagLocal | flagAdmin, right: access.Operate, run: configSet},
		{name: "config|resetstat", arity: 2, flags: flagLocal | flagAdmin, right: access.Operate, run: configResetStat},
	}}}
}

// fixedSettings are what clients ask about, as it is here. They cannot be set.
var fixedSettings = map[string]string{
	"appendonly":             "yes",
	"bind":                   "",
	"cluster-enabled":        "no",
	"databases":              "16",
	"dbfilename":             "",
	"dir":                    "",
	"maxmemory":              "0",
	"maxmemory-policy":       "noeviction",
	"notify-keyspace-events": "",
	"proto-max-bulk-len":     strconv.Itoa(maxArg), // New says what it is
	"requirepass":            "",                   // nobody is told
	"save":                   "",
	"timeout":                "0",
}

// idleSettings steer what Redis does inside. Setting them is accepted and changes nothing.
var idleSettings = map[string]string{
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

// maxSetting is the most bytes of a setting's value.
const maxSetting = 256

func configGet(s *session, _ *broker.Tx, args [][]byte) error {
	found := make(map[string]string)
	for _, pattern := range args[2:] {
		g := patternArg(bytes.ToLower(pattern))
		s.steps -= 1000 // dozens of names
		for _, settings := range []map[string]string{s.protocol.fixed, idleSettings, s.protocol.settings} {
			for name, value := range settings {
				if g.Match([]byte(name), &s.steps) {
					found[name] = value
				}
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

func configSet(s *session, _ *broker.Tx, args [][]byte) error {
	pairs := args[2:]
	if len(pairs)%2 != 0 {
		return failure(wrongArity("config|set"))
	}
	for i := 0; i < len(pairs); i += 2 {
		name, value := strings.ToLower(string(pairs[i])), pairs[i+1]
		fixed, isFixed := s.protocol.fixed[name]
		_, isIdle := idleSettings[name]
		const failed = "ERR CONFIG SET failed (possibly related to argument '%s') - %s"
		switch {
		case !isFixed && !isIdle:
			return failure(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", quoted(pairs[i])))
		case isFixed && string(value) != fixed:
			return failure(fmt.Sprintf(failed, name, "can't set immutable config"))
		case len(value) > maxSetting:
			return failure(fmt.Sprintf(failed, name, "value is too long"))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		s.protocol.settings[strings.ToLower(string(pairs[i]))] = string(pairs[i+1])
	}
	return s.ok()
}

func configResetStat(s *session, _ *broker.Tx, _ [][]byte) error {
	s.protocol.requests = 0
	return s.ok()
}
