package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTurnsAreThoseOfTheMeasurementAlone(t *testing.T) {
	turns := []int{100, 100, 100} // up to 1, 2 and 4 ms
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "# TYPE holdfast_turn_seconds histogram")
		sum := 0
		for i, le := range []string{"0.001", "0.002", "0.004"} {
			sum += turns[i]
			fmt.Fprintf(w, "holdfast_turn_seconds_bucket{le=%q} %d\n", le, sum)
		}
		fmt.Fprintf(w, "holdfast_turn_seconds_bucket{le=\"+Inf\"} %d\nholdfast_turn_seconds_sum 1\nholdfast_turn_seconds_count %d\n", sum, sum)
	}))
	defer page.Close()
	s := &server{peer: &peer{label: "holdfast"}, turns: true, admin: strings.TrimPrefix(page.URL, "http://")}
	before, err := s.times(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turns = []int{190, 110, 100}
	r := &row{Case: "case", Server: "holdfast"}
	after, err := s.times(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after.add(before, -1)
	r.Times.add(after, 1)
	for q, want := range map[float64]float64{0.45: 0.5, 0.9: 1, 0.95: 1.5, 1: 2} {
		if got := quantile(r.Times[0], q); fmt.Sprintf("%.3f", got) != fmt.Sprintf("%.3f", want) {
			t.Errorf("a share of %v took at most %v ms, want %v", q, got, want)
		}
	}
	var text strings.Builder
	(&report{Rows: []*row{r}}).writeTimes(&text)
	if words := strings.Join(strings.Fields(text.String()), " "); !strings.HasSuffix(words, "case holdfast turns 0.56 1.90 1.99 2.00") {
		t.Errorf("the table says %q", words)
	}
	page.Close()
	if _, err := s.times(t.Context()); err == nil {
		t.Error("a server without metrics gave no error")
	}
}
