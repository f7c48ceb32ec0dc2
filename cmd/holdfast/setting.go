package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kindOfSetting is how the value of a setting is written.
type kindOfSetting int

const (
	aText kindOfSetting = iota
	aNumber
	aTime // milliseconds to the server
	aSize
)

// kindOf looks at the name alone. Settings that it does not know are texts: the server knows them.
func kindOf(setting string) kindOfSetting {
	switch setting {
	case "max-attempts", "bound":
		return aNumber
	case "lease", "backoff-min", "backoff-max", "retain":
		return aTime
	case "bound-bytes":
		return aSize
	}
	return aText
}

// enumPrefix begins the name of the setting that declares the order of a tag's values, which the
// protocol calls enum TAG.
const enumPrefix = "enum."

// parseSetting reads a value as people write it. Whole numbers are as the server takes them.
func parseSetting(name, value string) (string, error) {
	if _, err := strconv.ParseUint(value, 10, 63); err == nil {
		return value, nil
	}
	switch kindOf(name) {
	case aTime:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return "", fmt.Errorf("%s=%s: expected a time such as 30s", name, value)
		}
		return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10), nil
	case aSize:
		var size byteSize
		if err := size.UnmarshalText([]byte(value)); err != nil {
			return "", fmt.Errorf("%s=%s: %w", name, value, err)
		}
		return strconv.FormatInt(int64(size), 10), nil
	}
	return value, nil
}

// settingText is a value as people write it.
func settingText(name, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	kind := kindOf(name)
	switch {
	case err == nil && kind == aTime:
		text := (time.Duration(n) * time.Millisecond).String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	case err == nil && kind == aSize:
		return byteSize(n).String()
	}
	return optional(value, longCell)
}
