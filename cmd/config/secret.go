package config

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

// Secret is a flag that names a file with a password, or the password itself from a variable. No
// flag holds a password: others can see the flags of a process.
type Secret struct{ File, Text string } // of which one is empty

// maxSecret is the longest file with a password, in bytes.
const maxSecret = 4096

// inVariable is a password that stood in a variable.
type inVariable string

func decodeSecret(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("file")
	if err != nil {
		return err
	}
	s := Secret{File: token.String()}
	if text, ok := token.Value.(inVariable); ok {
		s = Secret{Text: string(text)}
	}
	target.Set(reflect.ValueOf(s))
	return nil
}

// lasting is read for a server, which reads the file again at each reload.
func (s *Secret) lasting() (string, error) {
	if s.File != "" {
		if err := daemon.Lasting(s.File); err != nil {
			return "", fmt.Errorf("the password: %w", err)
		}
	}
	return s.Read()
}

// Read is the password, "" for none. The error names a file that cannot be read, or is empty.
func (s *Secret) Read() (string, error) {
	if s.File == "" {
		return s.Text, nil
	}
	text, err := readBounded(s.File, maxSecret)
	if err != nil {
		return "", fmt.Errorf("the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", fmt.Errorf("file %s is empty: expected a password", s.File)
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
