package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// enumPrefix begins the name of the setting that declares the order of a tag's values, which the
// protocol calls enum TAG.
const enumPrefix = "enum."

// kindOf is how the value of a setting is written. One that this program does not know is a text:
// the server may know it.
func kindOf(name string) content.SettingKind {
	for _, k := range content.SettingsTable {
		if k.Name == name {
			return k.Kind
		}
	}
	return content.SettingName
}

// parseSetting reads a value as people write it. The server explains what is wrong with texts.
func parseSetting(name, value string) (string, error) {
	var err error
	switch kindOf(name) {
	case content.SettingDuration:
		var d time.Duration
		d, err = terminal.ParseTime(value)
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

// settingText is a value as people write it.
func settingText(name, value string) string {
	n, err := strconv.ParseInt(value, 10, 64)
	switch kind := kindOf(name); {
	case err == nil && kind == content.SettingDuration:
		return terminal.TimeText(time.Duration(n) * time.Millisecond)
	case err == nil && kind == content.SettingBytes:
		return terminal.ByteSize(n).String()
	}
	return terminal.Optional(value, terminal.LongCell)
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
	for _, k := range content.SettingsTable {
		if !k.Fixed {
			names = append(names, strings.Replace(k.Name, "enum", enumPrefix+"TAG", 1))
		}
	}
	return names
}

// defaultOf is the default of a setting as the server takes it; false if there is no such setting.
func defaultOf(name string) (value string, ok bool) {
	for _, k := range content.SettingsTable {
		switch {
		case k.Name != name:
		case k.Kind == content.SettingName:
			return "", true
		case k.Kind == content.SettingChoice:
			return k.Words[0], true
		case k.Kind == content.SettingFlag:
			return "no", true
		default:
			return terminal.Decimal(k.Default), true
		}
	}
	return "", strings.HasPrefix(name, enumPrefix)
}
