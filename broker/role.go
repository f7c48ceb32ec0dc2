package broker

import (
	"fmt"
)

// A queue with exclusive-producer or exclusive-consumer has one client that pushes or takes: the
// first one that does so, or waits. A client is all connections of one name, or one connection
// without a name. Its roles end with its last connection. They are not on disk.

type role uint8

const (
	producerRole role = iota
	consumerRole
)

func (r role) String() string { return [...]string{"producer", "consumer"}[r] }

// exclusive says that settings give a role to one client.
func exclusive(s *Settings, r role) bool {
	return s != nil && (r == producerRole && s.ExclusiveProducer || r == consumerRole && s.ExclusiveConsumer)
}

// As says who makes the calls that follow, until the run of calls ends. Roles go to that client,
// and names are looked up in its database.
func (tx *Tx) As(c *Conn) { tx.caller, tx.db = c, c.db }

// SetName gives a connection a name, or none. It leaves the roles of its old name to the other
// connections that have that.
func (tx *Tx) SetName(c *Conn, name string) {
	m := tx.m
	var k *roleHolder
	if name != "" {
		if k = m.roleHolders[name]; k == nil {
			k = &roleHolder{name: name}
			m.roleHolders[name] = k
		}
		k.connections++
	}
	m.leaveRoleHolder(c)
	c.roleHolder, c.pushed = k, nil
}

// roleHolderOf returns the client that a connection belongs to.
func (m *Machine) roleHolderOf(c *Conn) *roleHolder {
	if c.roleHolder == nil {
		c.roleHolder = &roleHolder{name: c.to.Address(), connections: 1}
	}
	return c.roleHolder
}

// leaveRoleHolder takes a connection from its client, whose roles end with the last one.
func (m *Machine) leaveRoleHolder(c *Conn) {
	k := c.roleHolder
	if k == nil {
		return
	}
	c.roleHolder = nil
	if k.connections--; k.connections > 0 {
		return
	}
	for h := range k.roles {
		h.q.roles[h.role] = nil
	}
	if m.roleHolders[k.name] == k { // not of one without a name
		delete(m.roleHolders, k.name)
	}
}

// grantRole gives a client, which may be none, a role that no other has.
func (q *queue) grantRole(r role, k *roleHolder) {
	if k == nil {
		return
	}
	if k.roles == nil {
		k.roles = make(map[holding]struct{})
	}
	k.roles[holding{q, r}] = struct{}{}
	q.roles[r] = k
}

// endRoles takes the roles back that the queue's settings give to nobody.
func (q *queue) endRoles() {
	for r, k := range q.roles {
		if k != nil && !exclusive(q.settings, role(r)) {
			delete(k.roles, holding{q, role(r)})
			q.roles[r] = nil
		}
	}
}

// mayUse says whether the caller has a role of a queue, or would get it, or there is no queue.
// ErrInUse names the client that has it.
func (tx *Tx) mayUse(q *queue, r role) error {
	if q == nil || !exclusive(q.settings, r) || tx.caller == nil {
		return nil
	}
	if k := q.roles[r]; k != nil && k != tx.m.roleHolderOf(tx.caller) {
		return fmt.Errorf("%w: %q is its only %s until it hangs up", ErrInUse, k.name, r)
	}
	return nil
}

// useRole gives the caller a role of a queue that it may use, if there is one.
func (tx *Tx) useRole(q *queue, r role) {
	if q != nil && exclusive(q.settings, r) && tx.caller != nil && q.roles[r] == nil {
		q.grantRole(r, tx.m.roleHolderOf(tx.caller))
	}
}

// holder is the name of the client that has a role of a queue, none if nobody has it. It is nil if
// the queue gives no such role.
func (q *queue) holder(r role) *string {
	if !exclusive(q.settings, r) {
		return nil
	}
	if k := q.roles[r]; k != nil {
		return &k.name
	}
	return new(string)
}
