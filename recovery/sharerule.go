package recovery

import (
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// ShareRule returns the rule of the index for content.Settings.ShareBy; nil if that is empty.
func ShareRule(shareBy []byte) *index.ShareRule {
	tag, byTag := strings.CutPrefix(string(shareBy), content.ShareByTag)
	switch {
	case len(shareBy) == 0:
		return nil
	case !byTag:
		return &index.ShareRule{By: string(shareBy)}
	}
	return &index.ShareRule{
		By:   string(shareBy),
		Name: func(tags []byte) []byte { value, _, _ := content.TagValue(tags, tag); return value },
		Rest: func(tags []byte) []byte {
			_, before, behind := content.TagValue(tags, tag)
			return slices.Concat(before, behind)
		},
	}
}

// ShareOwn returns for the index what a share has of its own. HeldUntil and Due are on the steady
// clock.
func ShareOwn(s *content.Share) index.ShareOwn {
	gap, _ := content.ParseRate(s.Rate)
	return index.ShareOwn{Weight: s.Weight, MaxClaimed: s.MaxClaimed, Gap: gap, Rest: s.HeldUntil, Due: index.TakeDue{At: s.Due, Gap: s.DueGap}}
}
