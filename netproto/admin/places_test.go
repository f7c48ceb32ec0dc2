package admin

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestAUserHasAsManyPlacesAsItLeaves(t *testing.T) {
	users := testUsers(t).Users()
	for name, c := range map[string]struct {
		size int
		who  []string // each takes as many as it gets
		want []int
	}{
		"one user":             {8, []string{"looker"}, []int{4}},
		"one who operates":     {8, []string{"operator"}, []int{5}},
		"several":              {8, []string{"looker", "manager", "worker", "all", "operator"}, []int{4, 2, 1, 1, 1}},
		"those who operate":    {8, []string{"operator", "looker", "operator"}, []int{5, 2, 0}},
		"a single place":       {1, []string{"looker", "manager", "operator"}, []int{1, 0, 1}},
		"of those who operate": {1, []string{"operator", "looker"}, []int{1, 0}},
		"no users":             {8, []string{"", ""}, []int{8, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPlaces(c.size)
			var all []func()
			for range 2 { // again when all have left
				for i, who := range c.who {
					n := 0
					for leave := p.Take(users.Named(who)); leave != nil; leave = p.Take(users.Named(who)) {
						all = append(all, leave)
						n++
					}
					if n != c.want[i] {
						t.Errorf("%q gets %d places, want %d", who, n, c.want[i])
					}
				}
				for _, leave := range all {
					leave()
				}
				all = nil
				if p.used != 0 || len(p.of) != 0 {
					t.Errorf("%d places of %v are used", p.used, p.of)
				}
			}
		})
	}
}

func TestWhoWaitsGetsThePlaceThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := testUsers(t).Users()
		p := NewPlaces(1)
		first := p.Take(users.Named("looker"))
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan func())
		for range 2 {
			go func() { given <- p.Wait(ctx, users.Named("manager")) }() // ends with ctx
		}
		synctest.Wait()
		first()
		if leave := <-given; leave == nil {
			t.Error("nobody gets the place that is left")
		}
		synctest.Wait()
		cancel()
		if leave := <-given; leave != nil {
			t.Error("two get it")
		}
	})
}
