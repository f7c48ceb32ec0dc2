package storage

import (
	"fmt"
	"log/slog"
	"strings"
)

// badgerLog passes what Badger logs on: its errors and warnings as warnings, since the caller
// checks by what Apply and Open return, all else for debugging.
type badgerLog struct{ to *slog.Logger }

func (l badgerLog) Errorf(format string, args ...any)   { l.to.Warn(line(format, args)) }
func (l badgerLog) Warningf(format string, args ...any) { l.to.Warn(line(format, args)) }
func (l badgerLog) Infof(format string, args ...any)    { l.to.Debug(line(format, args)) }

// Debugf drops the text: it is called for every transaction.
func (l badgerLog) Debugf(string, ...any) {}

func line(format string, args []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(format, args...))
}
