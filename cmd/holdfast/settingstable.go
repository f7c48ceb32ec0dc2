package main

// setting is what the command line knows of a queue's setting.
type setting struct {
	Name    string
	Kind    settingKind
	Default int64    // where it is not 0
	Words   []string // of a choice, the default first
	Fixed   bool     // a command of its own changes it
	Help    string
}

// settingKind is how people write the value of a setting.
type settingKind uint8

const (
	settingNumber   settingKind = iota
	settingBytes                // a number of bytes
	settingDuration             // in milliseconds
	settingChoice               // one of some words
	settingFlag                 // yes or no
	settingName                 // of a queue; empty: none
	settingOrders               // the values of tags, a tag at a time
)

var settingsTable = []setting{
	{Name: "max-attempts", Default: 5, Help: "claims after which a packet that comes back is dead; 0: without end"},
	{Name: "lease", Kind: settingDuration, Default: 30_000, Help: "how long a claim lasts that asks for no time"},
	{Name: "backoff-min", Kind: settingDuration, Default: 1000, Help: "wait before the second attempt, doubled for each one after it"},
	{Name: "backoff-max", Kind: settingDuration, Default: 600_000, Help: "the longest of these waits"},
	{Name: "dead-letter", Kind: settingName, Help: "queue that dead packets move to; empty: they stay"},
	{Name: "retain", Kind: settingDuration, Help: "how long an acknowledged packet stays, as done"},
	{Name: "bound", Help: "the most packets that are ready, delayed or claimed; 0: as many as come"},
	{Name: "bound-bytes", Kind: settingBytes, Help: "the most bytes of their keys and payloads; 0: as many as come"},
	{Name: "full", Kind: settingChoice, Words: []string{"reject", "block", "drop"}, Help: "what a full queue does with a push: reject, block or drop"},
	{Name: "exclusive-producer", Kind: settingFlag, Help: "whether clients of one name push, and no others"},
	{Name: "exclusive-consumer", Kind: settingFlag, Help: "whether clients of one name take, and no others"},
	{Name: "pause-in", Kind: settingFlag, Help: "whether pushes wait"},
	{Name: "pause-out", Kind: settingFlag, Help: "whether takes wait"},
	{Name: "closed", Kind: settingFlag, Fixed: true, Help: "whether nothing will ever be pushed again"},
	{Name: "enum", Kind: settingOrders, Help: "order of the values of a tag, from the lowest to the highest"},
}
