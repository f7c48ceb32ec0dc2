package words

// Trouble is what needs somebody in a queue. The server's page and the command line say it in the
// same words.
type Trouble struct {
	Any    []string `json:"any"`    // figures of QueueFigures, of which one is not 0
	Idle   int64    `json:"idle"`   // milliseconds for which nobody has taken of its ready packets, which did not die elsewhere; 0: whoever takes
	Ready  bool     `json:"ready"`  // it needs nobody where no packet is ready
	Counts string   `json:"counts"` // figure to add up: One and Many stand behind the number of packets; "" for none
	One    string   `json:"one"`    // said of one packet
	Many   string   `json:"many"`   // said of more, or of queues
	Note   string   `json:"note"`   // figure to tell of each queue; "" tells the age of its oldest packet
	Grave  bool     `json:"grave"`
	State  string   `json:"state"` // of the packets that it is about; "" for all
}

// Troubles are all that are looked for, worst first.
var Troubles = []Trouble{
	{Any: []string{"damaged"}, Counts: "damaged", One: "cannot be read from the disk", Many: "cannot be read from the disk", Note: "damaged", Grave: true, State: "damaged"},
	{Any: []string{"dead"}, Counts: "dead", One: "is dead", Many: "are dead", Note: "dead", Grave: true, State: "dead"},
	{
		Any: []string{"died-elsewhere"}, Counts: "died-elsewhere", Note: "died-elsewhere", Grave: true,
		One: "that died elsewhere is in a dead-letter queue", Many: "that died elsewhere are in a dead-letter queue",
	},
	{Any: []string{"overdue"}, Many: "The oldest packet is older than the alert-age of its queue"},
	{Any: []string{"held"}, Many: "A consumer that was not heard of for ten minutes holds packets", Note: "claimed"},
	{Any: []string{"full"}, Many: "Queues are full", Note: "ready"},
	{Any: []string{"paused-in", "paused-out"}, Ready: true, Many: "Queues are paused", Note: "ready"},
	{Any: []string{"ready"}, Idle: 60_000, Many: "Nobody has taken packets for a minute or more", Note: "ready"},
}
