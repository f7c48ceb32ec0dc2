package holdfast_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// ceiling is the most lines that a room may have: a folder with Go files, without those below it.
type ceiling struct {
	product int // of files that are no tests
	tests   int
}

// ceilings are those of all rooms. What takes lines away lowers them. A commit of its own raises
// one, and says which capability needs it. The references that run up in a room have theirs in
// layered.
func ceilings() map[string]ceiling {
	return map[string]ceiling{
		".":                           {13, 1316},
		"broker":                      {9674, 16720},
		"broker/cache":                {84, 44},
		"cmd/ask":                     {4194, 457},
		"cmd/certs":                   {128, 0},
		"cmd/cluster":                 {2175, 2607},
		"cmd/cluster/peer":            {954, 1229},
		"cmd/config":                  {2482, 34},
		"cmd/connection":              {445, 30},
		"cmd/daemon":                  {2391, 2498},
		"cmd/daemon/metrics":          {695, 405},
		"cmd/doctor":                  {409, 316},
		"cmd/folder":                  {1488, 101},
		"cmd/holdfast":                {1315, 8810},
		"cmd/terminal":                {1254, 437},
		"cmd/terminal/terminaltest":   {37, 0},
		"cmd/workshop":                {2254, 563},
		"cmd/workshop/loadgen":        {1945, 1053},
		"fuzz":                        {12, 883},
		"fuzz/cluster":                {18, 2824},
		"fuzz/crash":                  {23, 2037},
		"fuzz/crash/mutant":           {902, 0},
		"fuzz/crash/mutantserver":     {39, 0},
		"fuzz/doors":                  {17, 2214},
		"fuzz/model":                  {5391, 305},
		"fuzz/planted":                {365, 532},
		"fuzz/redis":                  {22, 3661},
		"fuzz/redissuite":             {7, 217},
		"fuzz/sim":                    {24, 3178},
		"fuzz/soak":                   {11, 1644},
		"fuzz/suite":                  {149, 48},
		"fuzz/wire":                   {7, 1377},
		"index":                       {6232, 5737},
		"index/keyspace":              {450, 337},
		"index/tree":                  {1049, 457},
		"netproto":                    {2854, 3145},
		"netproto/access":             {1109, 1009},
		"netproto/admin":              {1491, 1236},
		"netproto/admin/page":         {1616, 1579},
		"netproto/admin/page/browser": {0, 1457},
		"netproto/barbershop":         {503, 894},
		"netproto/client":             {2788, 3139},
		"netproto/glob":               {189, 186},
		"netproto/inmemory":           {212, 225},
		"netproto/pinpriq":            {591, 753},
		"netproto/resp":               {7302, 9425},
		"netproto/resp/wire":          {425, 339},
		"netproto/words":              {581, 160},
		"recovery":                    {987, 852},
		"recovery/archive":            {301, 300},
		"recovery/compact":            {86, 266},
		"recovery/dump":               {2333, 1496},
		"recovery/jsonbytes":          {222, 146},
		"recovery/load":               {244, 1344},
		"recovery/pipeline":           {105, 108},
		"recovery/recoverytest":       {519, 0},
		"recovery/verify":             {442, 644},
		"storage":                     {5046, 10187},
		"storage/cell":                {1934, 2694},
		"storage/content":             {3495, 739},
		"storage/disk":                {408, 112},
		"storage/disk/simulated":      {702, 196},
		"storage/inject":              {119, 33},
		"storage/journal":             {1049, 1218},
		"storage/tables":              {1783, 1641},
	}
}

// sizes counts the lines of each room.
func sizes(all []*source) map[string]ceiling {
	rooms := make(map[string]ceiling)
	for _, s := range all {
		if s.file == nil {
			continue
		}
		room, lines := rooms[s.folder()], strings.Count(s.text, "\n")
		if s.isTest() {
			room.tests += lines
		} else {
			room.product += lines
		}
		rooms[s.folder()] = room
	}
	return rooms
}

// above says which rooms are higher than their ceilings, and which ceilings have no room.
func above(rooms, most map[string]ceiling) []string {
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(rooms)) {
		has, may := rooms[folder], most[folder]
		if has.product > may.product || has.tests > may.tests {
			found = append(found, fmt.Sprintf("%s has %d lines and %d of tests, at most %d and %d: take some away, or raise its ceiling in a commit that names the capability",
				folder, has.product, has.tests, may.product, may.tests))
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(most)) {
		if _, there := rooms[folder]; !there {
			found = append(found, folder+" has a ceiling and no Go files")
		}
	}
	return found
}

func TestRoomsKeepBelowTheirCeilings(t *testing.T) {
	for _, breach := range above(sizes(project(t)), ceilings()) {
		t.Error(breach)
	}
}

func TestRoomsAboveTheirCeilingsAreFound(t *testing.T) {
	rooms := sizes([]*source{
		parse(t, "x/x.go", "package x\n\nvar a int\n"), parse(t, "x/y.go", "package x\n"), parse(t, "x/x_test.go", "package x\n"),
		parse(t, "x/y/y.go", "package y\n"), parse(t, "x/README.md", "words\n"),
	})
	for name, c := range map[string]struct {
		most map[string]ceiling
		want string // begins the one breach; without it there must be none
	}{
		"at the ceiling":       {map[string]ceiling{"x": {4, 1}, "x/y": {1, 0}}, ""},
		"a line too many":      {map[string]ceiling{"x": {3, 1}, "x/y": {1, 0}}, "x has 4 lines and 1 of tests, at most 3 and 1"},
		"a line of tests":      {map[string]ceiling{"x": {4, 0}, "x/y": {1, 0}}, "x has 4 lines"},
		"a room without one":   {map[string]ceiling{"x": {4, 1}}, "x/y has 1 lines and 0 of tests, at most 0"},
		"one that has no room": {map[string]ceiling{"x": {4, 1}, "x/y": {1, 0}, "z": {9, 9}}, "z has a ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			found := above(rooms, c.most)
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], c.want)) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
