package resp

import (
	"bytes"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// redisVersion is the version of Redis whose commands and words these are. Clients ask for it to
// know what they may use.
const redisVersion = "7.0.15"

func connectionCommands() []command {
	return []command{
		{name: "hello", flags: flagLocal | flagFast | flagNoAuth, run: hello},
		{name: "auth", flags: flagLocal | flagFast | flagNoAuth, run: auth},
		{name: "ping", flags: flagLocal | flagFast | flagPubSub, run: ping},
		{name: "echo", flags: flagLocal | flagFast, run: echo},
		{name: "quit", arity: -1, flags: flagLocal | flagFast | flagNoAuth | flagAtOnce | flagPubSub, run: quit},
		{name: "reset", flags: flagLocal | flagFast | flagNoAuth | flagAtOnce | flagPubSub, run: reset},
		{name: "select", flags: flagLocal | flagFast, run: selectDatabase},
		{name: "time", flags: flagLocal | flagFast, run: tellTime},
	}
}

func auth(s *session, tx *broker.Tx, args [][]byte) error {
	name, password := []byte(access.Default), args[1]
	switch {
	case len(args) > 3:
		return failure(errSyntax)
	case len(args) == 3:
		name, password = args[1], args[2]
	case s.pass.Open():
		return failure("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	if waits, err := s.login(tx, name, password); waits || err != nil {
		return err
	}
	return s.ok()
}

func hello(s *session, tx *broker.Tx, args [][]byte) (err error) {
	resp3 := s.resp3
	if len(args) > 1 {
		version, ok := wire.ParseInt(args[1])
		switch {
		case !ok:
			return failure("ERR Protocol version is not an integer or out of range")
		case version != 2 && version != 3:
			return failure("NOPROTO unsupported protocol version")
		}
		resp3 = version == 3
	}
	for i := 2; i < len(args) && err == nil; i++ {
		left := len(args) - 1 - i
		switch {
		case is(args[i], "auth") && left >= 2:
			var waits bool
			if waits, err = s.login(tx, args[i+1], args[i+2]); waits {
				return nil
			}
			i += 2
		case is(args[i], "setname") && left >= 1:
			err = s.setName(tx, args[i+1])
			i++
		default:
			err = failure(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", quoted(args[i])))
		}
	}
	if err == nil && !s.known() {
		err = failure("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	if err != nil {
		return err
	}
	s.resp3 = resp3
	return s.introduce()
}

// introduce tells who the server is.
func (s *session) introduce() error {
	version, mode, role := int64(2), "standalone", "master"
	if s.resp3 {
		version = 3
	}
	if s.protocol.cell != nil {
		mode, role = "sentinel", "sentinel"
	}
	s.mapHeader(7)
	s.bulkString("server", "redis", "version", redisVersion, "proto")
	s.int(version)
	s.bulkString("id")
	s.int(s.id)
	s.bulkString("mode", mode, "role", role, "modules")
	return s.array(0)
}

func ping(s *session, _ *broker.Tx, args [][]byte) error {
	switch {
	case len(args) > 2:
		return failure(wrongArity("ping"))
	case !s.resp3 && s.subscriptions() > 0:
		s.array(2)
		s.bulkString("pong")
		return s.bulk(bytes.Join(args[1:], nil)) // no text is an empty one
	case len(args) == 2:
		return s.bulk(args[1])
	}
	return s.simple("PONG")
}

func echo(s *session, _ *broker.Tx, args [][]byte) error { return s.bulk(args[1]) }

func quit(s *session, _ *broker.Tx, _ [][]byte) error {
	s.leaving = true
	return s.ok()
}

func reset(s *session, tx *broker.Tx, _ [][]byte) error {
	s.clear(tx)
	s.resp3, s.noReply = false, false
	s.client.name, s.client.replyOff = "", false
	tx.Select(s.consumer, 0)
	tx.SetName(s.consumer, "")
	s.beginAsUser()
	return s.simple("RESET")
}

func selectDatabase(s *session, tx *broker.Tx, args [][]byte) error {
	tx.Select(s.consumer, databaseArg(args[1]))
	return s.ok()
}

// databaseArg reads the number of a database.
func databaseArg(arg []byte) uint8 {
	n := intArg(arg)
	switch {
	case n != int64(int32(n)):
		refuse("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n < 0 || n >= broker.Databases:
		refuse("ERR DB index is out of range")
	}
	return uint8(n)
}

func tellTime(s *session, _ *broker.Tx, _ [][]byte) error {
	now := time.Now().UnixMicro()
	s.array(2)
	s.bulk(appendInt(nil, now/1e6))
	return s.bulk(appendInt(nil, now%1e6))
}
