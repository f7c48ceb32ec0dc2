package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// enumPrefix begins the name of the setting that declares the order of a tag's values, which the
// protocol calls enum TAG.
const enumPrefix = "enum."

// findSetting returns what is known of a setting; nil of one that this program does not know.
func findSetting(name string) *setting {
	i := slices.IndexFunc(settingsTable, func(k setting) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &settingsTable[i]
}

// parseSetting reads a value as people write it. The server explains what is wrong with texts, and
// with settings that this program does not know.
func parseSetting(name, value string) (string, error) {
	k := findSetting(name)
	switch {
	case k == nil:
	case k.Kind == settingDuration:
		d, err := parseTime(value)
		low, high := time.Duration(k.Low)*time.Millisecond, time.Duration(k.High)*time.Millisecond
		if err == nil && (d < low || d > high) {
			err = fmt.Errorf("expected %s to %s", timeText(low), timeText(high))
		}
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", name, value, err)
		}
		return decimal((d + time.Millisecond - 1).Milliseconds()), nil
	case k.Kind == settingBytes:
		var size byteSize
		if err := size.UnmarshalText([]byte(value)); err != nil {
			return "", fmt.Errorf("%s=%s: %w", name, value, err)
		}
		return decimal(int64(size)), nil
	}
	return value, nil
}

// settingText is a value as people write it.
func settingText(name, value string) string {
	k := findSetting(name)
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case k == nil || err != nil:
	case k.Kind == settingDuration:
		return timeText(time.Duration(n) * time.Millisecond)
	case k.Kind == settingBytes:
		return byteSize(n).String()
	}
	return optional(value, longLine)
}

// settingChanges are settings and their values as the protocol takes them.
type settingChanges struct {
	plain  []string
	orders [][]string
	names  []string // as the client library calls them
}

// add adds a setting. A tag's order of values is the setting enum.TAG.
func (s *settingChanges) add(name, value string) {
	if tag, ok := strings.CutPrefix(name, enumPrefix); ok {
		s.orders = append(s.orders, append([]string{"enum", tag}, strings.Split(value, ",")...))
		s.names = append(s.names, "enum "+tag)
		return
	}
	s.plain = append(s.plain, name, value)
	s.names = append(s.names, name)
}

// calls are the arguments of calls of the server. An order ends those of a call, so each further
// one needs a call of its own.
func (s *settingChanges) calls() [][]string {
	if len(s.orders) == 0 {
		return [][]string{s.plain}
	}
	s.orders[0] = append(s.plain, s.orders[0]...)
	return s.orders
}

// checkSettable refuses names of settings that the server would explain in words of its protocol.
func checkSettable(name string) error {
	switch name {
	case "enum":
		return errors.New("enum: expected the tag in the name, such as enum.class")
	case "closed":
		return errors.New(`closed: "holdfast close" closes a queue, for ever`)
	}
	return nil
}

// settingNames are those that set and unset take.
func settingNames() (names []string) {
	for _, k := range settingsTable {
		if !k.Fixed {
			names = append(names, strings.Replace(k.Name, "enum", enumPrefix+"TAG", 1))
		}
	}
	return names
}
