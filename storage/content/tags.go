package content

import "encoding/binary"

// AppendTags appends the form of tags by which packets with equal tags are told: each name and
// value behind its length. Tags that are sorted and equal give equal bytes, and no tags give none.
// It is for the memory: records have a form of their own.
func AppendTags(dst []byte, tags []Tag) []byte {
	for i := range tags {
		dst = binary.AppendUvarint(dst, uint64(len(tags[i].Name)))
		dst = append(dst, tags[i].Name...)
		dst = binary.AppendUvarint(dst, uint64(len(tags[i].Value)))
		dst = append(dst, tags[i].Value...)
	}
	return dst
}

// CutTag returns the first tag of what AppendTags has appended, which is not empty, and the rest.
func CutTag(tags string) (name, value, rest string) {
	name, rest = cutText(tags)
	value, rest = cutText(rest)
	return name, value, rest
}

// cutText returns the text behind a length, and what follows it.
func cutText(s string) (text, rest string) {
	n, i := 0, 0
	for ; s[i] >= 0x80; i++ {
		n |= int(s[i]&0x7f) << (7 * i)
	}
	n |= int(s[i]) << (7 * i)
	s = s[i+1:]
	return s[:n], s[n:]
}
