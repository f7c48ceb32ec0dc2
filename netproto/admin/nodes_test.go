package admin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// fakeNodes is a cell that is what it is told to be.
type fakeNodes struct {
	Cluster
	err error
}

func (f fakeNodes) Status(context.Context) (Cluster, error) { return f.Cluster, f.err }

func TestWhoOperatesIsToldWhatTheCellIs(t *testing.T) {
	cell := Cluster{Cell: "main", By: "a", Majority: true, Head: 1 << 60, Spare: 1, Nodes: []Node{{Name: "a", Voter: true, Lag: 3, ClockMS: -5}, {Name: "ü \x00"}}}
	s := start(t, Config{Users: testUsers(t), Nodes: fakeNodes{Cluster: cell}})
	c := &Client{Address: s.Addr().String(), User: "operator", Password: secret, Timeout: patience}
	if got, err := c.Cluster(t.Context()); err != nil || !reflect.DeepEqual(got, cell) {
		t.Errorf("%+v, %v; want %+v", got, err, cell)
	}
	c.User = "all"
	if _, err := c.Cluster(t.Context()); !errors.Is(err, ErrForbidden) {
		t.Errorf("who may not operate gets %v", err)
	}
	s = start(t, Config{Nodes: fakeNodes{err: errors.New("not yet")}})
	if status, body := ask(t, s, getting("/cluster", "")); status != 503 || body != "not yet\n" {
		t.Errorf("%d %q", status, body)
	}
	s = start(t, Config{})
	if status, body := ask(t, s, getting("/cluster", "")); status != 404 || body != "this is a single server, and no node of a cell\n" {
		t.Errorf("a server alone answers %d %q", status, body)
	}
}

// Remove removes one node alone.
func (f fakeNodes) Remove(_ context.Context, node string) error {
	if node == "late" {
		return fmt.Errorf("%w: look", ErrUnknown)
	}
	if node != "b & c" {
		return errors.New("no such node")
	}
	return nil
}

// HandOver always works.
func (f fakeNodes) HandOver(context.Context, string) error { return nil }

func TestAChangeOfTheCellIsMadeOrRefusedInWords(t *testing.T) {
	s := start(t, Config{Nodes: fakeNodes{}})
	c := &Client{Address: s.Addr().String(), Timeout: patience}
	if err := c.ChangeCluster(t.Context(), Remove, "b & c"); err != nil {
		t.Error(err)
	}
	if err := c.ChangeCluster(t.Context(), Remove, "d"); !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), "no such node") {
		t.Error(err)
	}
	if err := c.ChangeCluster(t.Context(), Remove, "late"); !errors.Is(err, ErrUnknown) || errors.Is(err, ErrRefused) {
		t.Errorf("what may be done is told as %v", err)
	}
	if err := c.ChangeCluster(t.Context(), HandOver, "d"); err != nil {
		t.Error(err)
	}
	if status, _ := ask(t, s, getting("/cluster/remove?node=b", "")); status != 405 {
		t.Errorf("a request that looks is answered %d", status)
	}
}
