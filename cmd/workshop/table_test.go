package main

import "testing"

func TestTheRateOfATableIsThatOfPgbenchWithoutItsConnections(t *testing.T) {
	const said = "number of transactions actually processed: 9\ninitial connection time = 7.5 ms\ntps = 1073.51 (without initial connection time)\n"
	if rate, err := rateOf(said); err != nil || rate != 1073.51 {
		t.Errorf("the rate is %v, %v; expected 1073.51", rate, err)
	}
	if _, err := rateOf("number of transactions actually processed: 0\n"); err == nil {
		t.Error("no rate is no error, expected one where the connections took all of the time")
	}
}

func TestATableIsAskedWhatItsCasesMeasure(t *testing.T) {
	for _, c := range tableCases(func(full, quick int) int { return quick }) {
		for _, l := range c.loads {
			if tableAsks[l.ask] == "" {
				t.Errorf("%s asks a table to %s, which it does not know", c.name, l.ask)
			}
		}
	}
}
