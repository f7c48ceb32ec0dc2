package crash

import "testing"

func TestFiltersMatchAsTheServerShould(t *testing.T) {
	class := func(op, value string) term { return term{"class", op, value} }
	size := func(op, value string) term { return term{"size", op, value} }
	for name, row := range map[string]struct {
		tags tags
		of   filter
		want bool
	}{
		"no term":               {tags{}, filter{}, true},
		"by the declared order": {tags{class: "mid"}, filter{terms: []term{class("lt", "high")}}, true},
		"not by bytes":          {tags{class: "low"}, filter{terms: []term{class("gt", "high")}}, false},
		"as integers":           {tags{size: "9"}, filter{terms: []term{size("lt", "10")}}, true},
		"equal":                 {tags{size: "9"}, filter{terms: []term{size("eq", "9")}}, true},
		"without the tag":       {tags{size: "9"}, filter{terms: []term{class("ne", "low")}}, false},
		"one of all":            {tags{size: "9"}, filter{terms: []term{size("ge", "9"), class("ge", "low")}}, false},
		"one of any":            {tags{size: "9"}, filter{terms: []term{size("ge", "9"), class("ge", "low")}, any: true}, true},
		"none of any":           {tags{size: "8"}, filter{terms: []term{size("ge", "9"), class("ge", "low")}, any: true}, false},
	} {
		if got := row.of.matches(row.tags); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
