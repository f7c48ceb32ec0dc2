package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// variableOf is the name of the environment variable of a flag: --max-conns is HOLDFAST_MAX_CONNS.
func variableOf(flag *kong.Flag) string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// variable is a kong resolver: it gives a flag that is not on the command line the value of its
// environment variable, unless that is empty.
func (p *program) variable(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "help" {
		return nil, nil
	}
	if value, ok := p.env(variableOf(flag)); ok && value != "" {
		return value, nil
	}
	return nil, nil
}

// helpWithVariable names the environment variable in the help of a flag.
func helpWithVariable(value *kong.Value) string {
	if value.Flag == nil || value.Name == "help" {
		return value.Help
	}
	return strings.TrimSuffix(value.Help, ".") + " ($" + variableOf(value.Flag) + ")."
}
