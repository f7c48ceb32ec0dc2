package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// changeTime is for one try to change the members, unless two elections take longer.
const changeTime = 2 * time.Second

// Peer is one member of the cell, as the cell knows it.
type Peer struct {
	ID      uint64
	Name    string // of its node; its address if it was added and has never started
	Address string // HOST:PORT that others dial
	Learner bool   // it gets all, and has no vote
}

func peers(r *clientv3.MemberListResponse) (all []Peer) {
	for _, member := range r.Members {
		_, address, _ := strings.Cut(member.PeerURLs[0], "://")
		all = append(all, Peer{ID: member.ID, Name: cmp.Or(member.Name, address), Address: address, Learner: member.IsLearner})
	}
	return all
}

// Votes says whether this node has a vote, as it knows itself: it never learns of one too early.
func (m *Member) Votes() bool {
	own := m.etcd.Server.Cluster().Member(m.etcd.Server.MemberID())
	return own != nil && !own.IsLearner
}

// Leader names the node that leads etcd, as this node knows it; it is empty while there is none.
func (m *Member) Leader() string {
	if leader := m.etcd.Server.Cluster().Member(m.etcd.Server.Leader()); leader != nil {
		return leader.Name
	}
	return ""
}

// Add makes a node known to the cell as a learner, and returns what its Join needs. A member of
// this name that has a vote must be removed before: a node never comes back as the member it was,
// since with an empty folder it could elect one without the last packets. A learner of it goes.
//
// It waits while another node joins, and 30 s while etcd says that members are not connected.
func (m *Member) Add(ctx context.Context, node, address string) (initialCluster string, err error) {
	if node == m.config.Node {
		return "", fmt.Errorf("node %s asks itself to be added: it is a member", node)
	}
	if err := m.change(ctx, node, address, m.dropLearner); err != nil {
		return "", err // what the cell knows of a voter stays
	}
	if err := m.forget(ctx, node); err != nil {
		return "", err
	}
	at := m.config.url(address)
	var all []string
	add := m.tried(func(ctx context.Context) error {
		known, err := m.client.MemberList(ctx)
		if err != nil {
			return err
		}
		joins := slices.ContainsFunc(known.Members, (*etcdserverpb.Member).GetIsLearner)
		if joins && !slices.ContainsFunc(known.Members, func(b *etcdserverpb.Member) bool { return b.PeerURLs[0] == at.String() }) {
			return rpctypes.ErrTooManyLearners // etcd would warn of each try, and keep it in its log
		}
		_, err = m.client.MemberAddAsLearner(ctx, []string{at.String()})
		isThere := errors.Is(err, rpctypes.ErrPeerURLExist) || errors.Is(err, rpctypes.ErrMemberExist)
		if err != nil && !isThere {
			return err
		}
		r, unread := m.client.MemberList(ctx)
		if unread != nil {
			return unread
		}
		all, isThere = nil, false
		for _, member := range r.Members {
			name := types.ID(member.ID).String()                        // one that has not started has no name, and etcd wants one
			if member.PeerURLs[0] == at.String() && member.Name == "" { // another node's has a name, one of a try before has none
				name, isThere = node, true
			}
			all = append(all, name+"="+member.PeerURLs[0])
		}
		if !isThere {
			return cmp.Or(err, errUnknown)
		}
		return nil
	})
	if err := patiently(ctx, func() error { return add(ctx) }); err != nil {
		return "", fmt.Errorf("add node %s at %s: %w", node, address, err)
	}
	return strings.Join(all, ","), nil
}

// Promote gives a learner its vote. It waits for one that lags in etcd's log, 30 s at most.
func (m *Member) Promote(ctx context.Context, node string) error {
	return m.change(ctx, node, "", func(ctx context.Context, p Peer) error {
		if !p.Learner {
			return nil
		}
		if _, err := m.client.MemberPromote(ctx, p.ID); !errors.Is(err, rpctypes.ErrMemberNotLearner) { // of a try before
			return err
		}
		return nil
	})
}

// Remove takes a node out of the cell, for ever, with what the cell knows of it. Whether those that
// stay have all packets is the caller's to look at.
func (m *Member) Remove(ctx context.Context, node string) error {
	if err := m.change(ctx, node, "", m.drop); err != nil {
		return err
	}
	return m.forget(ctx, node)
}

func (m *Member) dropLearner(ctx context.Context, p Peer) error {
	if !p.Learner {
		return fmt.Errorf("a node of this name at %s has a vote: remove that one first", p.Address)
	}
	return m.drop(ctx, p)
}

// drop removes a member. Where that one leads etcd this node leads before: who leads is gone before
// it can tell the outcome, and all wait for an election.
func (m *Member) drop(ctx context.Context, p Peer) error {
	if uint64(m.etcd.Server.Leader()) == p.ID {
		once, cancel := context.WithTimeout(ctx, max(changeTime/2, m.config.Election))
		_ = m.etcd.Server.MoveLeader(once, p.ID, uint64(m.etcd.Server.MemberID())) // without a vote it may not, and removes all the same
		cancel()
	}
	if _, err := m.client.MemberRemove(ctx, p.ID); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return err
	}
	return nil
}

// forget deletes a node's keys. A floor of tables that are gone would let the log be cut too far.
func (m *Member) forget(ctx context.Context, node string) error {
	forget := m.tried(func(ctx context.Context) error {
		_, err := m.client.Txn(ctx).Then(clientv3.OpDelete("floor/"+node), clientv3.OpDelete("node/"+node), clientv3.OpDelete("copy/"+node)).Commit()
		return err
	})
	return patiently(ctx, func() error { return forget(ctx) })
}

// change does something to the member of a node, which must be there unless an address is given.
// Then it does it to a member at this address that has never started, too.
func (m *Member) change(ctx context.Context, node, address string, how func(context.Context, Peer) error) error {
	var all *clientv3.MemberListResponse
	list := m.tried(func(ctx context.Context) (err error) {
		all, err = m.client.MemberList(ctx)
		return err
	})
	if err := patiently(ctx, func() error { return list(ctx) }); err != nil {
		return err
	}
	found := address != ""
	for _, p := range peers(all) {
		if p.Name != node && p.Name != address {
			continue
		}
		found = true
		do := m.tried(func(ctx context.Context) error { return how(ctx, p) })
		if err := patiently(ctx, func() error { return do(ctx) }); err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	if !found {
		return fmt.Errorf("node %s: %w", node, errUnknown)
	}
	return nil
}

// tried limits a change of members. Raft drops one in silence that it gets before it has applied
// all that was before it, and etcd waits for the outcome as long as the context lets it.
func (m *Member) tried(change func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, max(changeTime, 2*m.config.Election))
		defer cancel()
		return change(ctx)
	}
}

// passing are refusals that do not last: a member must have been connected for 5 s; two that are
// added at one address in one second have the same id; one that joins may ask a node that lags.
var passing = []error{
	rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrMemberLearnerNotReady,
	rpctypes.ErrMemberNotFound, errUnknown, ErrRemoved,
}

// patiently tries a change of members again: 30 s while its refusal passes or its outcome is not
// known, and as long as ctx allows while there is a learner, since etcd takes one at a time.
func patiently(ctx context.Context, change func() error) error {
	begin := time.Now()
	return retry(ctx, 250*time.Millisecond, func(err error) bool {
		is := func(refusal error) bool { return errors.Is(err, refusal) }
		passes := slices.ContainsFunc(passing, is) || isUncertain(err)
		return is(rpctypes.ErrTooManyLearners) || passes && time.Since(begin) < 30*time.Second
	}, change)
}
