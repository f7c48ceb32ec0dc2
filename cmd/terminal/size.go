package terminal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes on the command line: 64MiB, 1GB, 4096B.
type ByteSize int64

// unit is a suffix of a ByteSize and what it stands for.
type unit struct {
	suffix string
	bytes  int64
}

// units lists the suffixes, each before those that it ends with.
func units() []unit {
	return []unit{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
	}
}

// UnmarshalText reads a whole number with a unit, in either case of letters, or a plain 0.
func (s *ByteSize) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		if *s = 0; n > 0 {
			return noUnit(string(text), "B", "KiB", "MiB", "GiB")
		}
		return nil
	}
	upper := strings.ToUpper(string(text))
	for _, u := range units() {
		digits, ok := strings.CutSuffix(upper, strings.ToUpper(u.suffix))
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			break
		}
		*s = ByteSize(int64(n) * u.bytes)
		return nil
	}
	return fmt.Errorf("expected a whole number of B, KiB, MiB or GiB, such as 64MiB, got %.80q", text)
}

// String is the size in the largest unit that leaves no rest.
func (s ByteSize) String() string {
	for _, u := range units()[:3] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// Approximate is a number of bytes for people, in the largest unit of which it is at least one.
func Approximate(n int64) string {
	for _, u := range units()[:3] {
		if n >= u.bytes {
			return strconv.FormatFloat(float64(n)/float64(u.bytes), 'f', 1, 64) + " " + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}
