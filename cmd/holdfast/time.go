package main

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// longest is the longest time that the server takes: ten years.
const longest = 315_360_000_000 * time.Millisecond

// daysAndWeeks are the units that time.ParseDuration does not know.
var daysAndWeeks = regexp.MustCompile(`[0-9.]+[dw]`)

// parseTime reads a time with its units, such as 1h30m, or a plain 0.
func parseTime(text string) (time.Duration, error) {
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
	if err == nil {
		return d, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, noUnit(text, "ms", "s", "m", "h", "d", "w")
	}
	return 0, fmt.Errorf("%.80q: expected a time such as 30s, 500ms, 2d or 1h30m", text)
}

// noUnit refuses a number that could mean many things.
func noUnit(number string, units ...string) error {
	last := len(units) - 1
	return fmt.Errorf("%.80q has no unit: write %s or %s", number, number+strings.Join(units[:last], ", "+number), number+units[last])
}

// decodeTime has kong read times with parseTime.
func decodeTime(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("time")
	if err != nil {
		return err
	}
	d, err := parseTime(token.String())
	target.SetInt(int64(d))
	return err
}

// timeText is a time as parseTime reads it, without the units that are 0.
func timeText(d time.Duration) string {
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

// checkTime refuses a time that the server would.
func checkTime(flag string, t time.Duration) error {
	if t < 0 || t > longest {
		return fmt.Errorf("%s %s: expected 0s to %s", flag, timeText(t), timeText(longest))
	}
	return nil
}

// checkWait refuses a time to wait that the server would.
func checkWait(flag string, t *time.Duration) error {
	if t == nil {
		return nil
	}
	return checkTime(flag, *t)
}

// moments are the forms of a moment: of this machine's time zone, or with a zone of its own.
var moments = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z07:00"}

// decodeMoment has kong read a date and a time of day.
func decodeMoment(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("moment")
	if err != nil {
		return err
	}
	text := token.String()
	for _, form := range moments {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			target.Set(reflect.ValueOf(t))
			return nil
		}
	}
	return fmt.Errorf("%.80q: expected a date and a time such as 2026-12-01T08:00, which is local, 2026-12-01T08:00Z or 2026-12-01T08:00+02:00", text)
}
