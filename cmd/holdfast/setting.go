package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// kindOf is how the value of a setting is written. One that the table does not have is a name: the
// server may know it.
func kindOf(setting string) storage.SettingKind {
	for _, k := range storage.SettingsTable {
		if k.Name == setting {
			return k.Kind
		}
	}
	return storage.SettingName
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
	case storage.SettingDuration:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return "", fmt.Errorf("%s=%s: expected a time such as 30s", name, value)
		}
		return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10), nil
	case storage.SettingBytes:
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
	case err == nil && kind == storage.SettingDuration:
		text := (time.Duration(n) * time.Millisecond).String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	case err == nil && kind == storage.SettingBytes:
		return byteSize(n).String()
	}
	return optional(value, longLine)
}
