package folder

import "testing"

func TestALoadThatIsCutShortBeforeItWentOnSaysTheSame(t *testing.T) {
	for want, l := range map[string]serverLoad{
		"39000,2":     {Load: &Load{From: []int64{39000, 2}}, from: 39000, record: 1024, target: loadTarget{own: 3}},
		"1":           {Load: &Load{}},
		"1025,3,1030": {Load: &Load{From: []int64{7, 2, 1030}}, from: 7, record: 1024, target: loadTarget{own: 3}},
		"1000,3":      {Load: &Load{}, record: 1024, target: loadTarget{own: 3}, commands: []loadCommand{{record: 1000}}},
	} {
		if got := l.rest(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
