package main

import "testing"

func TestALoadThatIsCutShortBeforeItWentOnSaysTheSame(t *testing.T) {
	for want, l := range map[string]serverLoad{
		"39000,2":     {loadCmd: &loadCmd{From: []int64{39000, 2}}, from: 39000, record: 1024, target: loadTarget{own: 3}},
		"1":           {loadCmd: &loadCmd{}},
		"1025,3,1030": {loadCmd: &loadCmd{From: []int64{7, 2, 1030}}, from: 7, record: 1024, target: loadTarget{own: 3}},
		"1000,3":      {loadCmd: &loadCmd{}, record: 1024, target: loadTarget{own: 3}, commands: []loadCommand{{record: 1000}}},
	} {
		if got := l.rest(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
