package ask

import (
	"strings"
	"testing"
)

func TestStatusSaysWhatAFullDiskRefuses(t *testing.T) {
	for level, want := range map[string]string{"normal": " free", "no-push": " free: pushes are refused until some is freed", "stop": " free: everything is refused until some is freed"} {
		var out strings.Builder
		if err := printStatus(&out, map[string]string{"disk_level": level}); err != nil || !strings.HasSuffix(out.String(), want+"\n") {
			t.Errorf("%v, printed %q of level %s, want %q", err, out.String(), level, want)
		}
	}
}
