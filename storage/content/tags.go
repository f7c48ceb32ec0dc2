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
func CutTag[T string | []byte](tags T) (name, value, rest T) {
	name, rest = cutText(tags)
	value, rest = cutText(rest)
	return name, value, rest
}

// TagValue returns the value of one of the tags that AppendTags has appended; nil if it is not
// there. What is left of them without that tag is before and behind.
func TagValue(tags []byte, tag string) (value, before, behind []byte) {
	for behind = tags; len(behind) > 0; {
		at := len(tags) - len(behind)
		var name []byte
		if name, value, behind = CutTag(behind); string(name) == tag {
			return value, tags[:at], behind
		}
	}
	return nil, tags, nil
}

// cutText returns the text behind a length, and what follows it.
func cutText[T string | []byte](s T) (text, rest T) {
	n, i := 0, 0
	for ; s[i] >= 0x80; i++ {
		n |= int(s[i]&0x7f) << (7 * i)
	}
	n |= int(s[i]) << (7 * i)
	s = s[i+1:]
	return s[:n], s[n:]
}
