package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

// want compares a value.
func want[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestQueuesAreAdministered(t *testing.T) {
	addr := startServer(t, storage.SyncNever())
	for _, protocol := range []int{2, 3} {
		c, ctx := client.New(&redis.Options{Addr: addr, Protocol: protocol, ClientName: "boss"}), t.Context()
		defer c.Close()
		ok(t, c.Set(ctx, "q", "max-attempts", "1", "enum", "class", "low", "very high"))
		settings := must(c.Get(ctx, "q"))(t)
		want(t, "max-attempts", settings["max-attempts"], "1")
		want(t, "enum", settings["enum class"], "low,very high")
		gates := func(want ...string) {
			t.Helper()
			s := must(c.Get(ctx, "q"))(t)
			got := []string{s["pause-out"], s["pause-out-until"], s["pause-in"], s["pause-in-until"]}
			if !slices.Equal(got, want) {
				t.Errorf("the gates are %v, want %v", got, want)
			}
		}
		ok(t, c.Pause(ctx, "q"))
		gates("yes", "0", "no", "0")
		ok(t, c.PauseUntil(ctx, "q", time.UnixMilli(4e12), client.Takes, client.Pushes))
		gates("yes", "4000000000000", "yes", "4000000000000")
		ok(t, c.Resume(ctx, "q"))
		gates("no", "0", "yes", "4000000000000")
		ok(t, c.Resume(ctx, "q", client.Pushes))
		gates("no", "0", "no", "0")
		ok(t, c.Pause(ctx, "q", client.Pushes, client.Takes))
		gates("yes", "0", "yes", "0")
		ok(t, c.PauseUntil(ctx, "q", time.Time{}, client.Pushes, client.Takes))
		gates("no", "0", "no", "0")
		ok(t, c.Set(ctx, "q", "retain", 90*time.Second, "bound", 100, "exclusive-consumer", true))
		s := must(c.Get(ctx, "q"))(t)
		want(t, "settings of other types", s["retain"]+" "+s["bound"]+" "+s["exclusive-consumer"], "90000 100 yes")
		ok(t, c.Set(ctx, "q", "retain", 0, "bound", 0, "exclusive-consumer", false))
		ids := must(c.PushBatch(ctx, "q", [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d")}))(t)
		must(c.Push(ctx, "q", []byte("low"), client.Tag("class", "low")))(t)
		ok(t, c.SetPriority(ctx, "q", ids[2], 1))
		ok(t, c.Reschedule(ctx, "q", ids[2], time.Now().Add(time.Hour)))
		if p := must(c.Show(ctx, "q", ids[2]))(t); p.State != client.StateDelayed {
			t.Error(p.State)
		}
		ok(t, c.RescheduleIn(ctx, "q", ids[2], time.Hour))
		ok(t, c.Reschedule(ctx, "q", ids[2], time.Time{}))
		if err := c.Reschedule(ctx, "q", "123456", time.Time{}); !errors.Is(err, client.ErrNoPacket) {
			t.Error(err)
		}
		if err := c.SetPriority(ctx, "q", "123456", 1); !errors.Is(err, client.ErrNoPacket) {
			t.Errorf("a priority for no packet gives %v", err)
		}
		want(t, "next", string(must(c.Peek(ctx, "q", 2))(t)[0].Payload), "c")
		dead := must(c.Claim(ctx, "q"))(t)[0]
		must(dead.Nack(ctx, client.Dead(errors.New("bad"))))(t)
		gone := must(c.Push(ctx, "q", nil))(t)
		want(t, "what became of the packets", fmt.Sprintf("%q", must(c.Cancel(ctx, "q", gone, dead.ID))(t)), `["gone" ""]`)
		held := must(c.Claim(ctx, "q", client.As("w")))(t)[0]
		stats := must(c.Stats(ctx, "q"))(t)
		want(t, "stats", fmt.Sprint(stats.Ready, stats.Claimed, stats.Dead, stats.Pushed, stats.Died), "3 1 1 6 1")
		consumers := must(c.Consumers(ctx, "q"))(t)
		i := slices.IndexFunc(consumers, func(w client.Consumer) bool { return w.Name == "w" })
		if i < 0 || consumers[i].Claimed != 1 || !slices.Equal(consumers[i].IDs, []string{held.ID}) || consumers[i].Since.IsZero() {
			t.Errorf("consumers %+v", consumers)
		}
		want(t, "length", must(c.Len(ctx, "q"))(t), 4)
		if err := c.RedrivePacket(ctx, "q", "123456"); !errors.Is(err, client.ErrNoPacket) {
			t.Errorf("redrive of a packet that is not there: %v", err)
		}
		want(t, "redriven", must(c.Redrive(ctx, "q", client.To("other")))(t), 1)
		want(t, "harvested", must(c.Harvest(ctx, "q", client.Older(time.Hour)))(t), 0)
		want(t, "harvested", must(c.Harvest(ctx, "q", client.As("v")))(t), 0)
		want(t, "harvested", must(c.Harvest(ctx, "q", client.As("w")))(t), 1)
		want(t, "moved", must(c.Move(ctx, "q", "other", ids[0]))(t), 1)
		want(t, "moved", must(c.MoveAll(ctx, "q", "other", client.Where("class", "<=", "low")))(t), 1)
		want(t, "deleted", must(c.Delete(ctx, "q", ids...))(t), 2)
		want(t, "queues", fmt.Sprint(must(c.Queues(ctx, "o*"))(t)), "[other]")
		want(t, "purged", must(c.Purge(ctx, "other", client.InState(client.StateReady), client.DryRun()))(t), 3)
		want(t, "purged", must(c.Purge(ctx, "other"))(t), 3)
		ok(t, c.Drop(ctx, "q"))
		for what, err := range map[string]error{
			"drop": c.Drop(ctx, "q"), "stats": second(c.Stats(ctx, "q")), "get": second(c.Get(ctx, "q")),
			"show": second(c.Show(ctx, "q", "1")), "consumers": second(c.Consumers(ctx, "q")),
		} {
			if !errors.Is(err, client.ErrNoQueue) {
				t.Errorf("%s of no queue gives %v", what, err)
			}
		}
	}
}

func second[V any](_ V, err error) error { return err }

func TestAListGoesThroughAllPages(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	var pushed []string
	for range 3 {
		pushed = append(pushed, must(c.PushBatch(ctx, "q", make([][]byte, 90)))(t)...)
	}
	must(must(c.Claim(ctx, "q"))(t)[0].Nack(ctx, errors.New("later")))(t)
	var listed []string
	for p, err := range c.List(ctx, "q") {
		ok(t, err)
		listed = append(listed, p.ID)
	}
	if !slices.Equal(listed, append(pushed[1:], pushed[0])) {
		t.Errorf("listed %d of %d packets", len(listed), len(pushed))
	}
	for p, err := range c.List(ctx, "q", client.InState(client.StateDelayed)) {
		ok(t, err)
		want(t, "delayed", p.ID, pushed[0])
	}
	for p, err := range c.List(ctx, "q", client.TTL(time.Hour)) {
		if !errors.Is(err, client.ErrInvalid) {
			t.Errorf("a list with an option of Push gives %v, %v", p, err)
		}
	}
}

func TestFiltersSelect(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	ok(t, c.Set(ctx, "q", "enum", "class", "low", "standard", "high"))
	for _, class := range []string{"high", "low", "standard"} {
		must(c.Push(ctx, "q", []byte(class), client.Tag("class", class), client.Tag("zone", "a")))(t)
	}
	for text, expected := range map[string]string{
		"class=low": "low", "class!=high": "low standard", "class<standard": "low", "class<=standard": "low standard",
		"class>low": "high standard", "class>=standard": "high standard", "zone=b": "",
	} {
		f := must(client.ParseFilter(text))(t)
		want(t, "text of a filter", f.String(), text)
		got := ""
		for p, err := range c.List(ctx, "q", f) {
			ok(t, err)
			if got != "" {
				got += " "
			}
			got += string(p.Payload)
		}
		want(t, text, got, expected)
	}
	for _, text := range []string{"", "class", "=low", "!x", "class!low"} {
		if f, err := client.ParseFilter(text); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("%q is read as %v, %v", text, f, err)
		}
	}
	got := must(c.Claim(ctx, "q", client.Where("class", "=", "low"), client.Where("zone", "=", "b"), client.MatchAny(1)))(t)
	if len(got) != 1 || string(got[0].Payload) != "low" {
		t.Errorf("claimed %v", got)
	}
	want(t, "setting share-by", c.Set(ctx, "q", "share-by", "tag:class"), nil)
	got = must(c.Claim(ctx, "q", client.InShare("high"), client.Count(9)))(t)
	if len(got) == 0 || string(got[0].Payload) != "high" {
		t.Errorf("of share high claimed %v", got)
	}
	if _, err := c.Claim(ctx, "q", client.Where("class", "~", "low")); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("an unknown operator gives %v", err)
	}
}

func TestWhoPushesIsListed(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	must(c.PushBatch(ctx, "q", make([][]byte, 3)))(t)
	all := must(c.Producers(ctx, "q"))(t)
	want(t, "producers", len(all), 1)
	want(t, "pushed", all[0].Pushed, 3)
	want(t, "user", all[0].User, "default")
	if all[0].Connection == 0 || all[0].Seen.IsZero() || all[0].Name == "" {
		t.Errorf("%+v", all[0])
	}
}

func TestSharesHaveWeightsAndAreListed(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	if err := c.Set(ctx, "q", "share-by", "key"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetShare(ctx, "q", "b", client.Weight(10)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "b"} {
		must(c.Push(ctx, "q", nil, client.Key(key)))(t)
	}
	must(c.Claim(ctx, "q", client.InShare("a")))(t)
	all := must(c.Shares(ctx, "q"))(t)
	if len(all) != 2 || all[0].Name != "b" || all[0].Ready != 2 || all[0].Weight != 10 || all[1].Claimed != 1 || all[1].Weight != 1 {
		t.Errorf("the shares are %+v", all)
	}
	want(t, "limiting a share", c.SetShare(ctx, "q", "b", client.MaxClaimed(1)), nil)
	want(t, "max-claimed", must(c.Shares(ctx, "q"))(t)[0].MaxClaimed, 1)
	want(t, "packets claimed at the limit", len(must(c.Claim(ctx, "q", client.InShare("b"), client.Count(9)))(t)), 1)
	want(t, "a rate and a rest of a share", c.SetShare(ctx, "q", "b", client.Rate("5/1h"), client.Rest(time.Minute)), nil)
	want(t, "rate", must(c.Shares(ctx, "q"))(t)[0].Rate, "5/1h")
	share := must(c.Shares(ctx, "q"))(t)[0]
	want(t, "it rests for up to a minute", share.Rests > 50*time.Second && share.Rests <= time.Minute, true)
	want(t, "why and until when is told", share.Why != "" && share.Until.After(time.Now()), true)
	if err := c.ResetShare(ctx, "q", "b"); err != nil {
		t.Fatal(err)
	}
	want(t, "weight", must(c.Shares(ctx, "q"))(t)[0].Weight, 1)
}

func TestARateCountsWhatAPacketCost(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	want(t, "setting a rate", c.Set(ctx, "q", "rate", "1000/1s"), nil)
	must(c.Push(ctx, "q", nil))(t)
	must(c.Push(ctx, "q", nil))(t)
	p := must(c.Claim(ctx, "q"))(t)[0]
	p.Cost = 1_000_000
	want(t, "ack", p.Ack(ctx), nil)
	want(t, "packets that may be claimed", len(must(c.Claim(ctx, "q"))(t)), 0)
}
