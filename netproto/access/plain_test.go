package access

import (
	"strings"
	"testing"
)

func TestAPlainConnectionIsItsCertificatesUserOrTheOneThatIsNamed(t *testing.T) {
	c := NewControl(users(t, User{Name: "a", Certificates: []string{"cert-a"}}, User{Name: "b"}, User{Name: "off", Off: true, Certificates: []string{"cert-off"}}))
	for _, one := range []struct{ user, certificate, want string }{
		{"", "", ""},
		{"b", "", "b"},
		{"b", "cert-a", "a"},
		{"b", "cert-off", ""},
		{"b", "b", ""}, // the name of a user is not that of a certificate
		{"", "cert-a", "a"},
		{"off", "", ""},
	} {
		pass := Plain{Control: c, User: one.user}.Pass(one.certificate)
		if got := pass.Account().Name(); got != one.want || (pass.Refuses(None, nil) == nil) != (one.want != "") {
			t.Errorf("plain user %q, certificate %q: user %q, %v", one.user, one.certificate, got, pass.Refuses(None, nil))
		}
	}
	for _, certificate := range []string{"", "cert-a"} {
		pass := Plain{}.Pass(certificate)
		if err := pass.Refuses(OfQueues|Operate, []byte("q")); err != nil {
			t.Errorf("without users: %v", err)
		}
	}
}

func TestAPlainUserMustBeThere(t *testing.T) {
	u := users(t, User{Name: "on"}, User{Name: "off", Off: true})
	for name, want := range map[string]string{"": "", "on": "", "off": "", "nobody": "there is no user"} {
		err := Plain{User: name}.Check(u)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	if err := (Plain{User: "on"}).Check(nil); err == nil {
		t.Error("a plain user without users is taken")
	}
}

func TestARefusalNamesTheQueueInOneShortLine(t *testing.T) {
	pass := Plain{Control: NewControl(users(t, User{Name: "a"})), User: "a"}.Pass("")
	err := pass.Refuses(Push, []byte(strings.Repeat("\n\xff", 30_000)))
	if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
}
