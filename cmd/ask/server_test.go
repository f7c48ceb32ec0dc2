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
func TestTheLibraryOfAConnectionIsATextAlsoIfItIsANumber(t *testing.T) {
	got := string(connectionJSON(map[string]string{"id": "7", "lib-name": "007", "lib-ver": "9", "db": "0", "age": "1", "idle": "2"}).Line())
	if want := `{"id":7,"age":1,"idle":2,"db":0,"library":"007","library_version":"9"}` + "\n"; got != want {
		t.Errorf("%swant %s", got, want)
	}
}
