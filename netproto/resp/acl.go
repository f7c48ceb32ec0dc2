package resp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

func aclCommands() []command {
	const local = flagLocal
	return []command{{name: "acl", arity: -2, flags: local | flagAdmin, subs: []command{
		{name: "acl|whoami", flags: local, run: aclWhoAmI},
		{name: "acl|users", flags: local | flagAdmin, right: access.Operate, run: aclUsers},
		{name: "acl|list", flags: local | flagAdmin, right: access.Operate, run: aclList},
		{name: "acl|cat", flags: local, run: aclCat},
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

// categories are those that Redis sorts its commands into. Rights are in their place here.
const categories = "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin fast slow blocking dangerous connection transaction scripting"

// aclCat replies with the categories, or with what one of them has: nothing.
func aclCat(s *session, _ *broker.Tx, args [][]byte) error {
	names := strings.Fields(categories)
	switch {
	case len(args) > 3:
		return failure(wrongArity("acl|cat"))
	case len(args) == 2:
	case !slices.Contains(names, strings.ToLower(string(args[2]))):
		return failure(fmt.Sprintf("ERR Unknown category '%s'", quoted(args[2])))
	default:
		names = nil
	}
	s.array(len(names))
	return s.bulkString(names...)
}
