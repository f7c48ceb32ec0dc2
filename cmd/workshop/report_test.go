package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheReportBeginsWithWhatARequestCosts(t *testing.T) {
	var r report
	r.add([]*row{{Case: "get-64", Server: "holdfast", Samples: []float64{1}, CPU: []float64{3, 1, 2}}, {Case: "get-64", Server: "redis", Samples: []float64{1}, CPU: []float64{1.6}}})
	r.add([]*row{{Case: "lpush-64", Server: "holdfast", Samples: []float64{1}, CPU: []float64{6}}, {Case: "lpush-64", Server: "redis", Samples: []float64{1}, CPU: []float64{8}}})
	r.add([]*row{{Case: "set-64", Server: "holdfast", Samples: []float64{1}, CPU: []float64{6}}})
	var text bytes.Buffer
	if err := r.write(&text); err != nil {
		t.Fatal(err)
	}
	cost, rest, _ := strings.Cut(text.String(), "unit")
	got := strings.Join(strings.Fields(cost), " ")
	if !strings.Contains(got, "LPUSH 6.00 8.00 0.75 GET 2.00 1.60 1.25 ") || strings.Contains(got, "SET") || !strings.Contains(rest, "set-64") {
		t.Errorf("the report is\n%s\nexpected LPUSH and GET first, and SET, without Redis, among the rest only", text.String())
	}
}

func TestARunOfOneCaseHasNoTableOfCosts(t *testing.T) {
	var r report
	r.add([]*row{{Case: "start", Server: "holdfast", Samples: []float64{1}}})
	var text bytes.Buffer
	if err := r.write(&text); err != nil || strings.Contains(text.String(), "goal") {
		t.Errorf("%v, the report is\n%s", err, text.String())
	}
}

func TestCostKeepsItsCasesWithHoldfastAndRedis(t *testing.T) {
	kept := onlyCost(allCases(allPrograms("holdfast"), false))
	if len(kept) != len(costCases) {
		t.Errorf("%d cases are kept, expected the %d of the table", len(kept), len(costCases))
	}
	for _, c := range kept {
		if len(c.peers) != 2 || c.peers[0].label != "holdfast" || c.peers[1].label != "redis" {
			t.Errorf("%s measures %+v, expected holdfast and redis", c.name, c.peers)
		}
	}
}

func TestARunTakesFiveRoundsUnlessToldOtherwise(t *testing.T) {
	for _, row := range []struct {
		options options
		rounds  int
	}{
		{options{}, 5}, {options{Cost: true}, 5}, {options{Cost: true, Quick: true}, 2}, {options{Cost: true, Rounds: 3}, 3},
	} {
		if rounds, _ := row.options.counts(); rounds != row.rounds {
			t.Errorf("%+v: %d rounds, expected %d", row.options, rounds, row.rounds)
		}
	}
}
