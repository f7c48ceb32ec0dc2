// Package access says who may do what, for all doors. The map:
//
//	access.go   rights, and users as they are written down
//	users.go    Users: a set of them that does not change
//	pass.go     Pass: what one connection may do
//	plain.go    Plain: connections that cannot log in
//	control.go  Control: the present set, and logins
//	penalty.go  addresses whose logins have failed
//	guesses.go  addresses whose passwords were not remembered
//	right.go    logins that were right of late
//	audit.go    Audit: the log of what users manage and operate
package access

import (
	"fmt"
	"strings"
)

// Right is a set of things that a user may do.
type Right uint8

const (
	Push    Right = 1 << iota // add packets to a queue, and values to names
	Take                      // take them, and end claims
	Look                      // see them and how a queue is doing
	Manage                    // change, move and delete what others stored, and how a queue works
	Operate                   // what concerns the server, or all queues and clients at once

	None Right = 0
	// OfQueues are the rights that a grant can give; Operate is the user's.
	OfQueues = Push | Take | Look | Manage
)

// words are the rights by their places.
var words = [...]string{"push", "take", "look", "manage", "operate"}

// String is the words of the rights, with + between them; "none" without any.
func (r Right) String() string {
	var all []string
	for i, word := range words {
		if r&(1<<i) != 0 {
			all = append(all, word)
		}
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, "+")
}

// ParseRight reads one word, in lower case.
func ParseRight(word string) (Right, error) {
	for i, w := range words {
		if w == word {
			return 1 << i, nil
		}
	}
	return None, fmt.Errorf("unknown right %q: expected %s", word, strings.Join(words[:], ", "))
}

// Grant gives rights to the queues whose names match a pattern of Redis. Manage brings Look.
type Grant struct {
	Glob   string
	Rights Right
}

// User is a user as it is written down.
type User struct {
	Name         string
	Hashes       []string // of its passwords, by bcrypt: any of them lets it in
	Password     string   // one more, in the clear; none if empty
	Certificates []string // names in client certificates that are this user
	Grants       []Grant
	Operate      bool
	Off          bool // it cannot log in, and a connection of it may do nothing
}

// Default is the user that a Redis client is when it names none.
const Default = "default"

// Everything is the grants of a user who may do all with all queues.
func Everything() []Grant { return []Grant{{Glob: "*", Rights: OfQueues}} }
