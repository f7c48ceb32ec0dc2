package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

func TestLogsSayTimesInTheirForm(t *testing.T) {
	for format, want := range map[string]string{"text": " took=1.5s", "json": `,"took_ms":1500}`} {
		var log strings.Builder
		(&program{Process: terminal.Process{Stderr: &log}}).logger(format, slog.LevelInfo).Info("done", "took", 1500*time.Millisecond)
		field(t, log.String(), want)
	}
}
