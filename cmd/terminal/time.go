package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// LongestTime is the longest time that the server takes: ten years.
const LongestTime = 315_360_000_000 * time.Millisecond

// daysAndWeeks are the units that time.ParseDuration does not know.
var daysAndWeeks = regexp.MustCompile(`[0-9.]+[dw]`)

// ParseTime reads a time with its units, such as 1h30m, or a plain 0: as long as the server takes.
func ParseTime(text string) (time.Duration, error) { return ParseTimeWithin(text, 0, LongestTime) }

// ParseTimeWithin is ParseTime of a time from low to high.
func ParseTimeWithin(text string, low, high time.Duration) (time.Duration, error) {
	inHours := daysAndWeeks.ReplaceAllStringFunc(text, func(part string) string {
		days, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part
		}
		if strings.HasSuffix(part, "w") {
			days *= 7
		}
		return strconv.FormatFloat(days*24, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(inHours)
	_, bare := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && d >= low && d <= high:
		return d, nil
	case err == nil:
		return 0, fmt.Errorf("expected %s to %s, got %.80q", TimeText(low), TimeText(high), text)
	case bare == nil:
		return 0, noUnit(text, "ms", "s", "m", "h", "d", "w")
	}
	return 0, fmt.Errorf("expected a time such as 30s, 500ms, 2d or 1h30m, got %.80q", text)
}

// noUnit refuses a number that could mean many things.
func noUnit(number string, units ...string) error {
	last := len(units) - 1
	return fmt.Errorf("%.80q has no unit: write %s or %s", number, number+strings.Join(units[:last], ", "+number), number+units[last])
}

// TimeText is a time as ParseTime reads it, without the units that are 0.
func TimeText(d time.Duration) string {
	text := (d % day).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	switch days := strconv.FormatInt(int64(d/day), 10) + "d"; {
	case d < day:
		return text
	case d%day == 0:
		return days
	default:
		return days + text
	}
}
