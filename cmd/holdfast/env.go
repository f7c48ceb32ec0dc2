package main

import (
	"maps"
	"strings"

	"github.com/alecthomas/kong"
)

// variables are the environment variables of the flags below a node: --max-conns is
// HOLDFAST_MAX_CONNS. Each flag of serve has one. Of other commands only those have that say which
// server is meant, and how to reach it: a variable must not change what a command does to packets.
func variables(node *kong.Node, all bool) map[*kong.Flag]string {
	found := make(map[*kong.Flag]string)
	for _, flag := range node.Flags {
		switch flag.Name {
		case "pinpriq", "barbershop", "redis", "admin", "redis-password", "redis-password-file", "timeout", "db":
		default:
			if !all {
				continue
			}
		}
		found[flag] = "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	}
	for _, child := range node.Children {
		maps.Copy(found, variables(child, child.Name == "serve"))
	}
	return found
}

// variable is a kong resolver: it gives a flag that is not on the command line the value of its
// environment variable, unless that is empty.
func (p *program) variable(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if value, ok := p.env(p.variables[flag]); ok && value != "" {
		return value, nil
	}
	return nil, nil
}

// helpWithVariable names the environment variable in the help of a flag.
func (p *program) helpWithVariable(value *kong.Value) string {
	if name := p.variables[value.Flag]; name != "" {
		return strings.TrimSuffix(value.Help, ".") + " ($" + name + ")."
	}
	return value.Help
}
