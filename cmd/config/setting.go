package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// EnumPrefix begins the name of the setting that declares the order of a tag's values, which the
// protocol calls enum TAG.
const EnumPrefix = "enum."

// SettingKind is how the value of a setting is written. One that this program does not know is a
// text: the server may know it.
func SettingKind(name string) content.SettingKind { return settingNamed(name).Kind }

func settingNamed(name string) content.Setting {
	for _, k := range content.SettingsTable {
		if k.Name == name {
			return k
		}
	}
	return content.Setting{Kind: content.SettingName}
}

// ParseSetting reads a value as people write it, and returns it as the server takes it: times in
// milliseconds, sizes in bytes. The server explains what is wrong with texts.
func ParseSetting(name, value string) (string, error) {
	var err error
	switch k := settingNamed(name); k.Kind {
	case content.SettingDuration:
		var d time.Duration
		d, err = terminal.ParseTimeWithin(value, time.Duration(k.Low)*time.Millisecond, time.Duration(k.High)*time.Millisecond)
		value = terminal.Decimal((d + time.Millisecond - 1).Milliseconds())
	case content.SettingBytes:
		var size terminal.ByteSize
		err = size.UnmarshalText([]byte(value))
		value = terminal.Decimal(int64(size))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// SettingText is a value of the server as people write it.
func SettingText(name, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	switch kind := SettingKind(name); {
	case err == nil && kind == content.SettingDuration:
		return terminal.TimeText(time.Duration(n) * time.Millisecond)
	case err == nil && kind == content.SettingMoment && n != 0:
		return terminal.Moment(time.UnixMilli(n), time.Now())
	case err == nil && kind == content.SettingBytes:
		return terminal.ByteSize(n).String()
	}
	return terminal.Optional(value)
}

// SettingChanges are settings and their values as the protocol takes them.
type SettingChanges struct {
	plain  []string
	orders [][]string
	Names  []string // as the client library calls them
}

// Add adds a setting. A tag's order of values is the setting enum.TAG.
func (s *SettingChanges) Add(name, value string) {
	if tag, ok := strings.CutPrefix(name, EnumPrefix); ok {
		s.orders = append(s.orders, append([]string{"enum", tag}, strings.Split(value, ",")...))
		s.Names = append(s.Names, "enum "+tag)
		return
	}
	s.plain = append(s.plain, name, value)
	s.Names = append(s.Names, name)
}

// Calls are the arguments of calls of the server. An order ends those of a call, so each further
// one needs a call of its own.
func (s *SettingChanges) Calls() [][]string {
	if len(s.orders) == 0 {
		return [][]string{s.plain}
	}
	s.orders[0] = append(s.plain, s.orders[0]...)
	return s.orders
}

// CheckSettable refuses names of settings that the server would explain in words of its protocol.
func CheckSettable(name string) error {
	switch name {
	case "enum":
		return errors.New("enum: expected the tag in the name, such as enum.class")
	case "force":
		return errors.New("force: expected --force")
	case "closed":
		return errors.New(`closed: "holdfast close" closes a queue, for ever`)
	case "pause-in-until", "pause-out-until":
		return fmt.Errorf(`%s: "holdfast pause --until" says when a pause ends`, name)
	}
	return nil
}

// SettingNames are those that set and unset take.
func SettingNames() (names []string) {
	for _, k := range content.SettingsTable {
		if k.By == "" {
			names = append(names, strings.Replace(k.Name, "enum", EnumPrefix+"TAG", 1))
		}
	}
	return names
}

// SettingDefault is the default of a setting as the server takes it; false if there is no such
// setting.
func SettingDefault(name string) (value string, ok bool) {
	for _, k := range content.SettingsTable {
		switch {
		case k.Name != name:
		case k.Kind == content.SettingName, k.Kind == content.SettingShareBy, k.Kind == content.SettingRate:
			return k.None, true
		case k.Kind == content.SettingChoice:
			return k.Words[0], true
		case k.Kind == content.SettingFlag:
			return "no", true
		default:
			return terminal.Decimal(k.Default), true
		}
	}
	return "", strings.HasPrefix(name, EnumPrefix)
}
