package config

import (
	"maps"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// variables are the environment variables of the flags below a node: --max-conns is
// HOLDFAST_MAX_CONNS. Each flag of serve has one. Of other commands only those have that say which
// server is meant, and how to reach it: a variable must not change what a command does to packets.
// What has the flags of serve has their variables.
func variables(node *kong.Node, all bool) map[*kong.Flag]string {
	found := make(map[*kong.Flag]string)
	for _, flag := range node.Flags {
		switch flag.Name {
		case "pinpriq", "barbershop", "redis", "admin", "db", "user", "password-file",
			"tls", "tls-ca", "tls-cert", "tls-key", "timeout", "context":
		case "json", "help":
			continue
		default:
			if !all {
				continue
			}
		}
		found[flag] = VariableOf(flag.Name)
	}
	for _, child := range node.Children {
		maps.Copy(found, variables(child, hasServe(child)))
	}
	return found
}

// hasServe says that the flags of a command are those of serve.
func hasServe(command *kong.Node) bool {
	return command.Name == "serve" || command.Name == "show" && command.Parent.Name == "config"
}

// VariableOf is the variable of a flag, such as HOLDFAST_TLS_CA of tls-ca.
func VariableOf(flag string) string { return "HOLDFAST_" + VariableName(flag) }

// variable is a kong resolver: it gives a flag that is not on the command line the value of its
// environment variable, unless that is empty. The variable of a password counts before that of its
// file.
func (s *Sources) variable(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if s.variables[flag] == "" {
		return nil, nil
	}
	for _, name := range append([]string{flag.Name}, flag.Aliases...) {
		name = VariableOf(name)
		if flag.Target.Type() == reflect.TypeFor[Secret]() {
			if value, ok := s.env(strings.TrimSuffix(name, "_FILE")); ok && value != "" {
				return inVariable(value), nil
			}
		}
		if value, ok := s.env(name); ok && value != "" {
			return value, nil
		}
	}
	return nil, nil
}

// HelpWithVariable names the environment variable in the help of a flag.
func (s *Sources) HelpWithVariable(value *kong.Value) string {
	if name := s.variables[value.Flag]; name != "" {
		return strings.TrimSuffix(value.Help, ".") + " ($" + name + ")."
	}
	return value.Help
}

// VariableName is a text as a part of a variable's name that shells can read.
func VariableName(text string) string {
	name := []byte(strings.ToUpper(text))
	for i, c := range name {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			name[i] = '_'
		}
	}
	return string(name)
}
