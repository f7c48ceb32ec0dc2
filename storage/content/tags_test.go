package content

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTagsAreEqualExactlyWhenTheirBytesAre(t *testing.T) {
	draw := func(t *rapid.T, label string) (tags []Tag) {
		text := rapid.SampledFrom([]string{"", "a", "b", "\x01", "\x01a", "a\x01b", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("y", 16384)})
		for range rapid.IntRange(0, 3).Draw(t, label) {
			tags = append(tags, Tag{text.Draw(t, "name"), text.Draw(t, "value")})
		}
		return tags
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		if rapid.Bool().Draw(t, "equal") {
			b = slices.Clone(a)
		}
		x, y := string(AppendTags(nil, a)), string(AppendTags([]byte("before"), b)[len("before"):])
		if (x == y) != slices.Equal(a, b) {
			t.Fatalf("%q is %q and %q is %q", a, x, b, y)
		}
		var got []Tag
		for rest := x; rest != ""; {
			var tag Tag
			tag.Name, tag.Value, rest = CutTag(rest)
			got = append(got, tag)
		}
		if !slices.Equal(got, a) {
			t.Fatalf("%q came back as %q", a, got)
		}
	})
}
