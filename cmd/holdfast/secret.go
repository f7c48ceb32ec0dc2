package main

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// secret is a flag that names a file with a password, or the password itself from a variable. No
// flag holds a password: others can see the flags of a process.
type secret struct{ file, text string }

// maxSecret is the longest file with a password, in bytes.
const maxSecret = 4096

// inVariable is a password that stood in a variable.
type inVariable string

func decodeSecret(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("file")
	if err != nil {
		return err
	}
	s := secret{file: token.String()}
	if text, ok := token.Value.(inVariable); ok {
		s = secret{text: string(text)}
	}
	target.Set(reflect.ValueOf(s))
	return nil
}

// lasting is read for a server, which reads the file again at each reload.
func (s *secret) lasting() (string, error) {
	if s.file != "" {
		if err := daemon.Lasting(s.file); err != nil {
			return "", fmt.Errorf("the password: %w", err)
		}
	}
	return s.read()
}

// read is the password, "" for none.
func (s *secret) read() (string, error) {
	if s.file == "" {
		return s.text, nil
	}
	text, err := readBounded(s.file, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", fmt.Errorf("file %s is empty: expected a password", s.file)
	}
	return password, nil
}

// readBounded reads a file of at most so many bytes.
func readBounded(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, terminal.Pathless(err))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, terminal.Pathless(err))
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%s is too large: expected at most %v", name, terminal.ByteSize(most))
	}
	return text, nil
}
