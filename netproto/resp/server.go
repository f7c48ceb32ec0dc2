package resp

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// Name is the protocol's name in logs.
const Name = "redis"

// Config says how the protocol is served. Zero values mean the defaults.
type Config struct {
	Password string          // of the user default, who may do everything, if Users is nil; none if empty
	Users    *access.Control // who may do what; nil: everybody everything, but for Password
	Disable  []string        // commands that are switched off, in either case
	Version  string          // of the server
	Since    time.Time       // when it started
	Epoch    uint64          // of the start: ids of connections begin above Epoch << 32
	// MaxPayload is the bytes of the longest payload that is read, 1 MiB at least.
	MaxPayload int
	Logger     *slog.Logger
	Audit      *access.Audit // of what clients manage and operate; nil: it is not logged
}

// Protocol serves a broker to Redis clients. The loop's goroutine owns it, with all that its
// sessions share.
type Protocol struct {
	config Config
	table  map[string]*command // by name, in lower case
	opened int64               // how many sessions

	sessions  map[int64]*session // those that have sent something
	args      [][]byte           // of the request that is carried out
	againArgs [][]byte           // of one that is made again meanwhile
	long      longRequest        // the last one that goes on in a later turn
	receipts  []broker.Receipt   // in args
	fields    mapWriter          // of the map that is written, such as a packet
	requests  uint64             // carried out since the start
	settings  map[string]string  // what CONFIG GET tells
	pubsub    pubsub
	cell      *Cell // what clients of Redis Sentinel are told; nil: the protocol serves queues
}

// New makes the protocol. CheckDisable tells whether Config.Disable names commands.
func New(c Config) *Protocol {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Users == nil && c.Password != "" {
		all, _ := access.NewUsers([]access.User{{Name: access.Default, Password: c.Password, Grants: access.Everything(), Operate: true}}) // which is sound
		c.Users = access.NewControl(all)
	}
	c.MaxPayload = max(c.MaxPayload, wire.MaxArg)
	p := &Protocol{
		config:   c,
		table:    newTable(),
		sessions: make(map[int64]*session),
		settings: maps.Clone(settings),
		pubsub:   newPubsub(),
	}
	p.settings["proto-max-bulk-len"] = strconv.Itoa(c.MaxPayload)
	for _, name := range c.Disable {
		delete(p.table, strings.ToLower(name))
	}
	return p
}

// CheckDisable returns an error if one of the names, in either case, is not that of a command.
func CheckDisable(names []string) error {
	table := newTable()
	for _, name := range names {
		if table[strings.ToLower(name)] == nil {
			return fmt.Errorf("no Redis command %q can be disabled: there is none", name)
		}
	}
	return nil
}

// Name implements netproto.Protocol.
func (p *Protocol) Name() string {
	if p.cell != nil {
		return SentinelName
	}
	return Name
}

// Delivery implements netproto.Protocol. No command of this protocol subscribes to a queue.
func (p *Protocol) Delivery() broker.Selection { return broker.Selection{} }

// Refusal implements netproto.Refuser.
func (p *Protocol) Refusal(why error) []byte {
	switch why {
	case netproto.ErrMemory, netproto.ErrPlain:
		return []byte("-ERR " + why.Error() + "\r\n")
	case netproto.ErrBinary:
		return []byte("-ERR Protocol error: " + why.Error() + "\r\n")
	}
	return []byte("-ERR max number of clients reached\r\n")
}
