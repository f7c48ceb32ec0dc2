package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery/dump"
)

// decoders read flags and arguments for kong, and refuse what the server would. Tags of a flag say
// more: range:"1 1000" is the lowest and, where given, the highest value; address:"127.0.0.1:6379"
// asks for an address as in the example; pattern:"" asks for what a name can match.
func decoders() []kong.Option {
	decoder := func(decode func(text string, tag *kong.Tag, target reflect.Value) error) kong.Mapper {
		return kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			token, err := ctx.Scan.PopValue("value")
			if err != nil {
				return err
			}
			err = decode(token.String(), ctx.Value.Tag, target)
			if at, ok := token.Value.(written); ok && err != nil {
				err = fmt.Errorf("%s: %w", at.where, err)
			}
			return err
		})
	}
	return []kong.Option{
		kong.KindMapper(reflect.String, decoder(decodeText)),
		kong.KindMapper(reflect.Int, decoder(decodeNumber)),
		kong.KindMapper(reflect.Int64, decoder(decodeNumber)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), decoder(decodeTime)),
		kong.TypeMapper(reflect.TypeFor[time.Time](), decoder(decodeMoment)),
		kong.TypeMapper(reflect.TypeFor[Secret](), kong.MapperFunc(decodeSecret)),
	}
}

// decodeText takes a text as it is. Kong's decoder goes through JSON, which would replace bytes of
// a name, a key or a payload that are not UTF-8.
func decodeText(text string, tag *kong.Tag, target reflect.Value) error {
	if example := tag.Get("address"); example != "" {
		all := []string{text}
		if tag.Has("several") {
			all = strings.Split(text, ",")
		}
		for _, address := range all {
			_, port, err := net.SplitHostPort(address)
			if err == nil && port != "" {
				_, err = net.LookupPort("tcp", port)
			}
			if err != nil || port == "" {
				return fmt.Errorf("expected HOST:PORT, such as %s, got %.80q", example, address)
			}
		}
	}
	target.SetString(text)
	if tag.Has("pattern") {
		return dump.CheckPatterns([]string{text})
	}
	return nil
}

// bounds are the lowest and the highest value of a flag or argument.
func bounds(tag *kong.Tag, high string) (string, string) {
	least, most, _ := strings.Cut(tag.Get("range"), " ")
	return cmp.Or(least, "0"), cmp.Or(most, high)
}

func decodeNumber(text string, tag *kong.Tag, target reflect.Value) error {
	low, high := bounds(tag, strconv.FormatInt(math.MaxInt64, 10))
	least, _ := strconv.ParseInt(low, 10, 64)
	most, _ := strconv.ParseInt(high, 10, 64)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		if !strings.Contains(tag.Get("range"), " ") {
			return fmt.Errorf("expected a whole number, %s or more, got %.80q", low, text)
		}
		return fmt.Errorf("expected a whole number from %s to %s, got %.80q", low, high, text)
	}
	target.SetInt(n)
	return nil
}

func decodeTime(text string, tag *kong.Tag, target reflect.Value) error {
	low, high := bounds(tag, terminal.TimeText(terminal.LongestTime))
	least, _ := terminal.ParseTime(low)
	most, _ := terminal.ParseTime(high)
	d, err := terminal.ParseTimeWithin(text, least, most)
	target.SetInt(int64(d))
	return err
}

// moments are the forms of a moment: in the time zone of this machine, or with a zone of its own.
var moments = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z07:00"}

func decodeMoment(text string, _ *kong.Tag, target reflect.Value) error {
	for _, form := range moments {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			target.Set(reflect.ValueOf(t))
			return nil
		}
	}
	return fmt.Errorf("expected a date and a time such as 2026-12-01T08:00, which is local, 2026-12-01T08:00Z or 2026-12-01T08:00+02:00, got %.80q", text)
}
