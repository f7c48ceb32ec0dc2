package ask

import "testing"

func TestTheLibraryOfAConnectionIsATextAlsoIfItIsANumber(t *testing.T) {
	got := string(connectionJSON(map[string]string{"id": "7", "lib-name": "007", "lib-ver": "9", "db": "0", "age": "1", "idle": "2"}))
	if want := `{"id":7,"age":1,"idle":2,"db":0,"library":"007","library_version":"9"}` + "\n"; got != want {
		t.Errorf("%swant %s", got, want)
	}
}
