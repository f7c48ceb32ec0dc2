package ask

import (
	"strings"
	"testing"
)

func TestStatusSaysWhatAFullDiskRefuses(t *testing.T) {
	for level, want := range map[string]string{"normal": " free", "no-push": " free: pushes are refused until some is freed", "stop": " free: everything is refused until some is freed"} {
		var out strings.Builder
		if err := printStatus(&out, map[string]string{"disk_level": level}, nil); err != nil || !strings.HasSuffix(out.String(), want+"\n\nNothing needs you.\n") {
			t.Errorf("%v, printed %q of level %s, want %q", err, out.String(), level, want)
		}
	}
}

func TestStatusSaysWhatLittleMemoryRefuses(t *testing.T) {
	for level, want := range map[string]string{"normal": " counted of 1.0 MiB\n", "no-push": " counted of 1.0 MiB: pushes are refused until packets are taken or deleted\n"} {
		var out strings.Builder
		info := map[string]string{"memory_level": level, "memory_limit": "1048576", "memory_counted": "900000"}
		if err := printStatus(&out, info, nil); err != nil || !strings.Contains(out.String(), want) {
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
