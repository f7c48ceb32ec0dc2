package model

import (
	"maps"
	"math/big"
	"strings"
)

// Redis counts in numbers with 64 bits and an exponent of 15, and writes 17 decimals at most.
const (
	mantissa = 64
	exponent = 1 << 14
	decimals = 17
)

// float reads a number as Redis does. Hexadecimal and infinite ones are none.
func float(text string) *big.Float {
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		panic(Err("ERR"))
	}
	x, _, err := big.ParseFloat(text, 10, mantissa, big.ToNearestEven)
	if err != nil || x.IsInf() || x.MantExp(nil) > exponent {
		panic(Err("ERR"))
	}
	if x.MantExp(nil) < -exponent-mantissa {
		return new(big.Float).SetPrec(mantissa)
	}
	return x
}

// plus adds to a number that a text is.
func plus(text string, there bool, by string) string {
	x := float(by)
	if !there {
		text = "0"
	}
	if x.Add(float(text), x); x.IsInf() || x.MantExp(nil) > exponent {
		panic(Err("ERR"))
	}
	if text = strings.TrimSuffix(strings.TrimRight(x.Text('f', decimals), "0"), "."); text == "-0" {
		text = "0"
	}
	return text
}

func incrbyfloat(s *Server, c call) any {
	v, there := s.values[c.name]
	v.text = plus(v.text, there, c.words[2])
	s.put(c.name, v)
	return v.text
}

func hincrbyfloat(s *Server, c call) any {
	v := s.values[c.name]
	old, there := v.fields[c.words[2]]
	sum := plus(old, there, c.words[3])
	if v.fields = maps.Clone(v.fields); v.fields == nil {
		v.fields = map[string]string{}
	}
	v.fields[c.words[2]] = sum
	s.put(c.name, v)
	return sum
}
