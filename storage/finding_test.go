package storage

import "testing"

func TestFindingsPastTheLastAreCounted(t *testing.T) {
	var f Found
	for range maxFindings + 5 {
		f.Add(FindingRecord, "key", "what")
	}
	if len(f.Findings) != maxFindings || f.More != 5 {
		t.Errorf("%d findings and %d more", len(f.Findings), f.More)
	}
}
