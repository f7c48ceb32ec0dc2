package page

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAReplyReadsTheSameWhereverItIsCut(t *testing.T) {
	for stream, want := range map[string]string{
		"+OK\r\n":                               `"OK"`,
		"-ERR no\r\n":                           ` ERR no`,
		"_\r\n":                                 `null`,
		":17\r\n":                               `17`,
		",inf\r\n":                              `"inf"`,
		"$5\r\nab\r\nc\r\n":                     `"ab\r\nc"`,
		"$0\r\n\r\n":                            `""`,
		"$-1\r\n":                               `null`,
		"$8\r\nabcdefgh\r\n":                    `{"cut":"abcdef","bytes":8}`,
		"=7\r\ntxt:a\r\n\r\n":                   `{"cut":"a\r","bytes":7}`,
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n":         `["a",[1]]`,
		"%1\r\n$1\r\na\r\n>0\r\n":               `{"a":[]}`,
		"%1\r\n$6\r\nbase64\r\n$1\r\nx\r\n":     `[["base64","x"]]`,
		"*2\r\n$1\r\n\xff\r\n%1\r\n:1\r\n_\r\n": `[{"base64":"/w=="},[[1,null]]]`,
		"?\r\n":                                 ` a reply is not of the Redis protocol`,
		"*1\r\n$x\r\n":                          `[ a reply is not of the Redis protocol`,
	} {
		read := func(r io.Reader) (string, error) {
			got, err := replies{bufio.NewReader(r), 6}.next(nil)
			if err != nil {
				return fmt.Sprintf("%s %v", got, err), err
			}
			return string(got), nil
		}
		got, _ := read(strings.NewReader(stream))
		slow, _ := read(iotest.OneByteReader(strings.NewReader(stream)))
		if got != want || slow != want {
			t.Errorf("%q: %s, byte by byte %s; want %s", stream, got, slow, want)
		}
		for cut := range stream {
			if got, err := read(strings.NewReader(stream[:cut])); err == nil {
				t.Errorf("%q cut at %d: %s", stream, cut, got)
			}
		}
	}
}
