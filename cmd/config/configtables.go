package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/netproto/resp"
)

// readTables makes users and defaults of queues of what the file says, and checks them.
func (f *configFile) readTables() error {
	users, names, err := f.table("users", f.values["users"])
	if err != nil {
		return err
	}
	for _, name := range names {
		u, err := f.user(name, users[name])
		if err != nil {
			return err
		}
		f.users = append(f.users, u)
	}
	if _, err := access.NewUsers(f.users); err != nil {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(err.Error(), fmt.Sprintf("user %q: ", name)); ok {
				at := pathOf("users", name)
				if key, what, _ := strings.Cut(rest, ": "); f.lines[pathOf(at, key)] > 0 {
					at, rest = pathOf(at, key), what
				}
				return f.wrong(at, errors.New(rest))
			}
		}
		return Error{fmt.Errorf("%s: %w", f.name, err)}
	}
	queues, globs, err := f.table("queues", f.values["queues"])
	if err != nil {
		return err
	}
	f.queues = make(map[string]broker.Settings)
	for _, glob := range globs {
		if f.queues[glob], err = f.settings(glob, queues[glob]); err != nil {
			return err
		}
	}
	return nil
}

// user reads the table of a user.
func (f *configFile) user(name string, value any) (u access.User, err error) {
	u.Name = name
	path := pathOf("users", name)
	table, keys, err := f.table(path, value)
	if err != nil {
		return u, err
	}
	for _, key := range keys {
		at, value := pathOf(path, key), table[key]
		switch key {
		case "hashes":
			u.Hashes, err = f.texts(at, value)
		case "certificates":
			u.Certificates, err = f.texts(at, value)
		case "password-file":
			u.Password, err = f.password(at, value)
		case "operate":
			u.Operate, err = as[bool](f, at, value)
		case "off":
			u.Off, err = as[bool](f, at, value)
		case "grants":
			u.Grants, err = f.grants(at, value)
		default:
			err = f.wrong(at, errors.New("unknown key: expected hashes, password-file, certificates, operate, off or grants"))
		}
		if err != nil {
			return u, err
		}
	}
	return u, nil
}

// password reads the file that a key names.
func (f *configFile) password(path string, value any) (string, error) {
	name, err := as[string](f, path, value)
	if err != nil {
		return "", err
	}
	f.secrets = append(f.secrets, name)
	password, err := (&Secret{File: name}).lasting()
	if err != nil {
		return "", f.wrong(path, err)
	}
	if len(password) > access.MaxClear {
		return "", f.wrong(path, fmt.Errorf("the password is too long: expected at most %d bytes", access.MaxClear))
	}
	return password, nil
}

// grants reads the table of globs of queues and the rights for them.
func (f *configFile) grants(path string, value any) (grants []access.Grant, err error) {
	table, keys, err := f.table(path, value)
	for _, pattern := range keys {
		at := pathOf(path, pattern)
		g := access.Grant{Glob: pattern}
		words, err := f.texts(at, table[pattern])
		if err != nil {
			return nil, err
		}
		for _, word := range words {
			right, err := access.ParseRight(word)
			if err == nil && right == access.Operate {
				err = errors.New("operate is no right for queues: write operate = true for the user")
			}
			if err != nil {
				return nil, f.wrong(at, err)
			}
			g.Rights |= right
		}
		if _, err := glob.Compile([]byte(pattern)); err != nil {
			return nil, f.wrong(at, err)
		}
		if g.Rights == access.None {
			return nil, f.wrong(at, fmt.Errorf("expected some rights of %v", access.OfQueues))
		}
		grants = append(grants, g)
	}
	return grants, err
}

// settings reads the table of the settings of queues.
func (f *configFile) settings(pattern string, value any) (s broker.Settings, err error) {
	path := pathOf("queues", pattern)
	table, keys, err := f.table(path, value)
	if err != nil {
		return s, err
	}
	if _, err := glob.Compile([]byte(pattern)); err != nil {
		return s, f.wrong(path, err)
	}
	var changes SettingChanges
	for _, key := range keys {
		at := pathOf(path, key)
		if key == "enum" {
			err = f.orders(at, table[key], &changes)
		} else {
			err = f.setting(at, key, table[key], &changes)
		}
		if err != nil {
			return s, err
		}
	}
	if len(keys) == 0 {
		return broker.DefaultSettings(), nil
	}
	s, err = resp.NewSettings(changes.Calls())
	if err != nil {
		name, rest, _ := strings.Cut(err.Error(), ": ")
		return s, f.wrong(pathOf(path, name), errors.New(rest))
	}
	return s, nil
}

// setting reads one setting of queues.
func (f *configFile) setting(path, name string, value any, changes *SettingChanges) error {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = terminal.Decimal(v)
	case bool:
		text = map[bool]string{true: "yes", false: "no"}[v]
	default:
		return f.wrong(path, fmt.Errorf("expected a string, a whole number, true or false, got %s", kindOfTOML(value)))
	}
	if _, known := SettingDefault(name); !known || strings.HasPrefix(name, EnumPrefix) {
		return f.wrong(path, fmt.Errorf("unknown setting: expected one of %s%s", strings.Join(SettingNames(), ", "), terminal.Nearest(name, SettingNames())))
	}
	text, err := ParseSetting(name, text)
	if err == nil {
		err = CheckSettable(name)
	}
	if err != nil {
		return f.wrong(path, errors.New(strings.TrimPrefix(err.Error(), name+": ")))
	}
	changes.Add(name, text)
	return nil
}

// orders reads the tables of tags and their values.
func (f *configFile) orders(path string, value any, changes *SettingChanges) error {
	table, keys, err := f.table(path, value)
	for _, tag := range keys {
		values, err := f.texts(pathOf(path, tag), table[tag])
		if err != nil {
			return err
		}
		changes.orders = append(changes.orders, append([]string{"enum", tag}, values...))
	}
	return err
}
