package cell_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

// errDropped is what etcd answers when raft drops a proposal, and errNotPrimary what it says of a
// lease while leadership moves.
var (
	errDropped    = status.Error(codes.Unknown, "raft proposal dropped")
	errNotPrimary = status.Error(codes.Unknown, "not a primary lessor")
)

func TestAnAppendWhoseAnswerIsLostIsOneBatch(t *testing.T) {
	m := members(t, "a")[0]
	lost := make(map[error]int)
	tries := []error{rpctypes.ErrTimeout, errDropped, errNotPrimary, rpctypes.ErrNoLeader, nil, rpctypes.ErrTimeoutDueToLeaderFail, nil}
	log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if err == nil && len(tries) > 0 && (puts(r) > 0 || !r.Succeeded) {
			err, tries = tries[0], tries[1:]
			lost[err]++
		}
		return r, err
	}), "a")
	term := claim(t, log, 0)
	large := strings.Repeat("large", 200_000)
	if err := term.Append(1, [][]byte{[]byte(large)}); err != nil {
		t.Fatal(err)
	}
	add(t, term, 2, 4)
	if len(lost) < 5 || len(tries) > 0 {
		t.Errorf("lost %v, left %v", lost, tries)
	}
	if got := follow(t, log, 0, 4); !slices.Equal(got, append([]batch{{1, large}}, added(2, 4)...)) {
		t.Errorf("got %.300v", got)
	}
}

func TestAnAppendThatEtcdRefusesEndsTheClaim(t *testing.T) {
	m := members(t, "a")[0]
	log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if err == nil && puts(r) == 2 {
			return nil, rpctypes.ErrNoSpace
		}
		return r, err
	}), "a")
	term := claim(t, log, 0)
	err := term.Append(1, nil)
	ended(t, term, err)
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("error %v does not say why", err)
	}
	ended(t, term, term.Append(1, nil))
}

// While the answer of an Append is lost, another claim has appended a batch of the same number.
func TestAnAppendIsFencedByAnotherContentOfItsNumber(t *testing.T) {
	m := members(t, "a")[0]
	// The sum of no content, from the definition of xxhash64.
	const ownSum = "17241709254077376921"
	for name, other := range map[string]struct {
		head string
		want error
	}{
		"its own":       {`{"batch":1,"fence":%d,"sum":` + ownSum + `}`, nil},
		"another sum":   {`{"batch":1,"fence":%d,"sum":1}`, cell.ErrFenced},
		"another claim": {`{"batch":1,"fence":1%d,"sum":` + ownSum + `}`, cell.ErrFenced},
		"another batch": {`{"batch":2,"fence":%d,"sum":` + ownSum + `}`, cell.ErrFenced},
	} {
		isLost := true
		log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
			if err == nil && puts(r) == 2 && isLost {
				isLost = false
				o, err := newLog(m.client, "b").Owner(t.Context())
				if err != nil {
					t.Error(err)
				}
				set(t, m.client, "head", fmt.Sprintf(other.head, o.Fence))
				return nil, rpctypes.ErrTimeout
			}
			return r, err
		}), "a")
		term := claim(t, log, 0)
		if err := term.Append(1, nil); !errors.Is(err, other.want) || isLost {
			t.Errorf("%s: %v, want %v", name, err, other.want)
		}
		empty(t, m.client, term)
	}
}

func TestAnAppendOfAnotherBatchThanTheNextEndsTheClaim(t *testing.T) {
	client, log := alone(t)
	for _, n := range []uint64{0, 1, 2, 4} {
		term := claim(t, log, 0)
		add(t, term, 1, 2)
		ended(t, term, term.Append(n, nil))
		empty(t, client, term)
	}
}
