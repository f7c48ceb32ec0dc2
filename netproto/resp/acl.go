package resp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func aclCommands() []command {
	const local = flagLocal
	return []command{{name: "acl", arity: -2, flags: local | flagAdmin, subs: []command{
		{name: "acl|whoami", arity: 2, flags: local, run: aclWhoAmI},
		{name: "acl|users", arity: 2, flags: local | flagAdmin, right: access.Operate, run: aclUsers},
		{name: "acl|list", arity: 2, flags: local | flagAdmin, right: access.Operate, run: aclList},
		{name: "acl|getuser", arity: 3, flags: local | flagAdmin, right: access.Operate, run: aclGetUser},
		{name: "acl|cat", arity: -2, flags: local, run: aclCat},
	}}}
}

func aclWhoAmI(s *session, _ *broker.Tx, _ [][]byte) error { return s.bulkString(s.userName()) }

// users are all users as they are written down. Without any there is the default one, who may do
// everything.
func (s *session) users() (all []*access.User) {
	if s.pass.Open() {
		return []*access.User{{Name: access.Default, Grants: access.Everything(), Operate: true}}
	}
	users := s.protocol.config.Users.Users()
	for _, name := range users.Names() {
		all = append(all, users.Named(name).User())
	}
	return all
}

// isUser says whether a user has the name.
func (s *session) isUser(name string) bool {
	return slices.ContainsFunc(s.users(), func(u *access.User) bool { return u.Name == name })
}

func aclUsers(s *session, _ *broker.Tx, _ [][]byte) error {
	all := s.users()
	s.array(len(all))
	for _, u := range all {
		s.bulkString(u.Name)
	}
	return nil
}

// userFlags are the words of Redis about how a user gets in.
func (s *session) userFlags(u *access.User) (words []string) {
	words = []string{"on"}
	if u.Off {
		words[0] = "off"
	}
	if s.pass.Open() {
		words = append(words, "nopass")
	}
	return words
}

// rules are rights as Redis writes them: each is a category of commands.
func rules(r access.Right) string {
	if r == access.None {
		return "-@all"
	}
	return "-@all +@" + strings.ReplaceAll(r.String(), "+", " +@")
}

// ownRights are those of a user that are not of queues.
func ownRights(u *access.User) access.Right {
	if u.Operate {
		return access.Operate
	}
	return access.None
}

// aclList replies with a line for each user. A grant is what Redis calls a selector. No hash is
// told.
func aclList(s *session, _ *broker.Tx, _ [][]byte) error {
	all := s.users()
	s.array(len(all))
	for _, u := range all {
		line := "user " + u.Name + " " + strings.Join(s.userFlags(u), " ") + " " + rules(ownRights(u))
		for _, g := range u.Grants {
			line += fmt.Sprintf(" (~%s &%s %s)", g.Glob, g.Glob, rules(g.Rights))
		}
		s.bulkString(line)
	}
	return nil
}

func aclGetUser(s *session, _ *broker.Tx, args [][]byte) error {
	all := s.users()
	at := slices.IndexFunc(all, func(u *access.User) bool { return u.Name == string(args[2]) })
	if at < 0 {
		return s.null()
	}
	u := all[at]
	words := s.userFlags(u)
	s.mapHeader(6)
	s.bulkString("flags")
	s.set(len(words))
	s.bulkString(words...)
	s.bulkString("passwords")
	s.array(0)
	s.bulkString("commands", rules(ownRights(u)), "keys", "", "channels", "", "selectors")
	s.array(len(u.Grants))
	for _, g := range u.Grants {
		s.mapHeader(3)
		s.bulkString("commands", rules(g.Rights), "keys", "~"+g.Glob, "channels", "&"+g.Glob)
	}
	return nil
}

// aclCat replies with the rights, or with the commands that need one of them.
func aclCat(s *session, _ *broker.Tx, args [][]byte) error {
	all := (access.OfQueues | access.Operate).String()
	if len(args) == 2 {
		names := strings.Split(all, "+")
		s.array(len(names))
		return s.bulkString(names...)
	}
	right, err := access.ParseRight(strings.ToLower(string(args[2])))
	switch {
	case len(args) > 3:
		return failure(wrongArity("acl|cat"))
	case err != nil:
		return failure(fmt.Sprintf("ERR Unknown category '%s'", quoted(args[2])))
	}
	var names []string
	for c := range s.protocol.commands() {
		if (c.needs()|c.second)&right != 0 {
			names = append(names, c.name)
		}
	}
	slices.Sort(names)
	s.array(len(names))
	return s.bulkString(names...)
}

// commands yields all commands that can be called, the subs of others too.
func (p *Protocol) commands() func(yield func(*command) bool) {
	return func(yield func(*command) bool) {
		for c := range maps.Values(p.table) {
			if c.run != nil && !yield(c) {
				return
			}
			for i := range c.subs {
				if !yield(&c.subs[i]) {
					return
				}
			}
		}
	}
}
