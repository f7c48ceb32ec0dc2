package wire

import (
	"math"
	"strings"
	"testing"
)

func TestIntegersAreReadAsRedisDoes(t *testing.T) {
	good := map[string]int64{
		"0": 0, "1": 1, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	}
	for text, want := range good {
		if got, ok := ParseInt([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", "+1", "01", "-0", "00", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808", "-9223372036854775809",
		"18446744073709551617", "10000000000000000000", "99999999999999999999",
	} {
		if got, ok := ParseInt([]byte(text)); ok {
			t.Errorf("%q was read as %d, expected a refusal", text, got)
		}
	}
}

func TestSumsOutOfRangeAreFound(t *testing.T) {
	for _, tt := range []struct {
		a, b int64
		ok   bool
	}{
		{1, 2, true}, {math.MaxInt64, 0, true}, {math.MaxInt64, 1, false}, {math.MinInt64, -1, false}, {math.MinInt64, 0, true},
		{math.MinInt64, math.MaxInt64, true}, {math.MinInt64, math.MinInt64, false}, {0, math.MinInt64, true}, {5, -5, true},
	} {
		if sum, ok := AddInt(tt.a, tt.b); ok != tt.ok || ok && sum != tt.a+tt.b {
			t.Errorf("%d + %d: %d, %v, want %v", tt.a, tt.b, sum, ok, tt.ok)
		}
	}
}

func TestFloatsHaveTheDigitsOfRedis(t *testing.T) {
	tests := []struct{ a, b, want string }{
		{"0", "1", "1"}, {"1", "0.25", "1.25"}, {"17179869184", "1.5", "17179869185.5"}, {"1", "-1.1", "-0.1"},
		{"3.0e3", "200", "3200"}, {"10.50", "0.1", "10.6"}, {"0", "1.23", "1.23"}, {"1.23", "0.77", "2"}, {"2", "-0.1", "1.9"},
		{"0.0243902439024390", "-0.0243902439024390", "0"}, {"-0", "0", "0"}, {"0", "1e-20", "0"}, {"-1e-20", "0", "0"},
		{"5.", ".5", "5.5"}, {"+1", "+2E1", "21"}, {"1e20", "1", "100000000000000000000"},
		{"123456789.123456789", "0", "123456789.12345678899873747"}, {"1e-5000", "1e-999999999", "0"},
		{"1e30", "0", "1000000000000000000024696061952"}, {"0.1", "0.2", "0.3"}, {"100", "0", "100"},
	}
	for _, tt := range tests {
		a, okA := ParseFloat([]byte(tt.a))
		b, okB := ParseFloat([]byte(tt.b))
		if !okA || !okB {
			t.Errorf("%s and %s: refused", tt.a, tt.b)
			continue
		}
		sum, ok := AddFloat(a, b)
		if !ok {
			t.Errorf("%s + %s: refused", tt.a, tt.b)
			continue
		}
		if got := string(AppendFloat([]byte("x"), sum)[1:]); got != tt.want {
			t.Errorf("%s + %s: %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestAFloatThatIsWrittenAsZeroIsNotWorkedOut(t *testing.T) {
	x, _ := ParseFloat([]byte("-1e-4900"))
	text := make([]byte, 0, 10)
	if n := testing.AllocsPerRun(1, func() { text = AppendFloat(text[:0], x) }); n > 0 || string(text) != "0" {
		t.Errorf("%s is written with %v allocations", text, n)
	}
	for text, want := range map[string]string{"4.9e-18": "0", "5.1e-18": "0.00000000000000001", "-3e-18": "0"} {
		x, _ := ParseFloat([]byte(text))
		if got := string(AppendFloat(nil, x)); got != want {
			t.Errorf("%s is written as %s, want %s", text, got, want)
		}
	}
}

func TestWhatIsNoFloatIsRefused(t *testing.T) {
	for _, text := range []string{
		"", " 1", "1 ", "1\x00", "a", "nan", "inf", "-Infinity", "0x10", "1p3", "1_0", "--1", "1e", ".", "1e5000", "1e999999999", "1e999999999999", "-1e5000",
		strings.Repeat("1", maxFloatText),
	} {
		if x, ok := ParseFloat([]byte(text)); ok {
			t.Errorf("%.20q was read as %v, expected a refusal", text, x)
		}
	}
	big, _ := ParseFloat([]byte("1e4932"))
	if sum, ok := AddFloat(big, big); ok {
		t.Errorf("1e4932 doubled is %v, expected a refusal", sum)
	}
}
