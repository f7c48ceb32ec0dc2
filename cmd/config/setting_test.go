package config

import "testing"

func TestPrintedSettingsCanBeSet(t *testing.T) {
	for _, c := range []struct{ name, text, value string }{
		{"retain", "0s", "0"}, {"lease", "1ms", "1"}, {"lease", "1h", "3600000"}, {"lease", "1h30m", "5400000"}, {"lease", "1m30s", "90000"},
		{"lease", "10h0m1s", "36001000"}, {"lease", "2d", "172800000"}, {"lease", "7d12h", "648000000"}, {"lease", "1d5m", "86700000"}, {"lease", "3650d", "315360000000"}, {"bound-bytes", "1025B", "1025"}, {"bound-bytes", "0B", "0"}, {"bound", "5", "5"}, {"full", "drop", "drop"},
	} {
		value, err := ParseSetting(c.name, c.text)
		if text := SettingText(c.name, c.value); err != nil || value != c.value || text != c.text {
			t.Errorf("%s=%s is %s to the server (%v), and %s is printed %s; want %s", c.name, c.text, value, err, c.value, text, c.value)
		}
	}
}
