package access

import (
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/glob"
	"golang.org/x/crypto/bcrypt"
)

// users makes a set, which must be sound.
func users(t testing.TB, all ...User) *Users {
	t.Helper()
	u, err := NewUsers(all)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// hashed is the cheapest hash of a password.
func hashed(t testing.TB, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(hash)
}

func compile(t testing.TB, pattern string) *glob.Pattern {
	t.Helper()
	g, err := glob.Compile([]byte(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func worker(t testing.TB) *Account {
	return users(t, User{Name: "worker", Grants: []Grant{
		{"mail.*", Take}, {"mail.in", Push}, {"log", Manage}, {"x?", Push | Take},
	}}).Named("worker")
}

func TestAUserMayWhatItsGrantsGive(t *testing.T) {
	a := worker(t)
	for _, c := range []struct {
		right Right
		queue string
		want  bool
	}{
		{Take, "mail.in", true},
		{Take, "mail.", true},
		{Take, "mail", false},
		{Take, "amail.in", false},
		{Push, "mail.in", true},
		{Push, "mail.out", false},
		{Push | Take, "mail.in", true}, // of two grants
		{Push | Take, "mail.out", false},
		{Push | Take, "xy", true},
		{Push | Take | Look, "xy", false},
		{Look, "mail.in", false},
		{Manage, "log", true},
		{Look, "log", true}, // Manage brings it
		{Take, "log", false},
		{Operate, "log", false},
		{None, "other", true},
	} {
		if got := a.May(c.right, []byte(c.queue)); got != c.want {
			t.Errorf("may %v %q: %v", c.right, c.queue, got)
		}
	}
}

func TestOperateIsOfTheServerAndOfNoQueue(t *testing.T) {
	a := users(t, User{Name: "op", Operate: true}).Named("op")
	if !a.May(Operate, nil) || !a.MaySome(Operate) || a.May(Look, []byte("q")) || a.MaySome(Operate|Look) {
		t.Error("an operator may do other things than operate")
	}
}

func TestAUserMayForAllOfAPatternWhatOneGrantCovers(t *testing.T) {
	a := worker(t)
	for _, c := range []struct {
		right   Right
		pattern string
		want    bool
	}{
		{Take, "mail.*", true},
		{Take, "mail.i*", true},
		{Take, "*", false},
		{Push, "x?", true},
		{Push, "x*", false},
		{Push, "mail.in", true},
	} {
		if got := a.MayAll(c.right, compile(t, c.pattern)); got != c.want {
			t.Errorf("may %v all %q: %v", c.right, c.pattern, got)
		}
	}
}

func TestAUserMaySomeIfEachRightIsSomewhere(t *testing.T) {
	a := worker(t)
	if !a.MaySome(Push|Manage) || a.MaySome(Push|Operate) {
		t.Error("rights of several grants are wrong")
	}
	if looker := users(t, User{Name: "x", Grants: []Grant{{"*", Look}}}).Named("x"); looker.MaySome(Push) || !looker.MaySome(Look) {
		t.Error("one who may look may push")
	}
}

func TestAGlobThatIsTooCostlyGivesNoRight(t *testing.T) {
	a := users(t, User{Name: "x", Grants: []Grant{{"*" + strings.Repeat("[ab]", 50) + "[c]*", Push}}}).Named("x")
	if !a.May(Push, []byte(strings.Repeat("a", 60)+"c")) {
		t.Error("a short name has no right")
	}
	if a.May(Push, []byte(strings.Repeat("a", 65_000)+"c")) {
		t.Error("a name was matched beyond the bound")
	}
}

func TestAmongManyQueuesAUserMayAtNoneWhatItMayNotByItself(t *testing.T) {
	u, err := NewUsers([]User{{Name: "a", Grants: []Grant{{"*-[0-9]*", Look}}}})
	if err != nil {
		t.Fatal(err)
	}
	queue, steps := []byte(strings.Repeat("-", 60_000)+"1x"), 100*maxSteps
	if a := u.Named("a"); a.May(Look, queue) || a.MayWithin(Look, queue, &steps) {
		t.Error("a queue that is too costly by itself may be looked at among others")
	}
	if used := 100*maxSteps - steps; used < maxSteps || used > maxSteps+10 {
		t.Errorf("it cost %d steps of the request", used)
	}
}

func TestUsersThatAreNotSoundAreRefused(t *testing.T) {
	good := User{Name: "good", Certificates: []string{"c"}}
	secret := "$2a$04$" + strings.Repeat("s", 52)
	costly := strings.Replace(hashed(t, "x"), "$04$", "$15$", 1)
	for name, c := range map[string]struct {
		user User
		want string
	}{
		"no name":             {User{}, `user "": not a name`},
		"a space":             {User{Name: "a b"}, "not a name"},
		"a new line":          {User{Name: "a\n"}, "not a name"},
		"not ASCII":           {User{Name: "é"}, "not a name"},
		"a long name":         {User{Name: strings.Repeat("a", 129)}, "not a name"},
		"one twice":           {User{Name: "good"}, "two of them"},
		"a right of nothing":  {User{Name: "a", Grants: []Grant{{"q", None}}}, `grant "q" gives none`},
		"operate for a queue": {User{Name: "a", Grants: []Grant{{"q", Push | Operate}}}, "expected some of push+take+look+manage"},
		"a glob with a space": {User{Name: "a", Grants: []Grant{{"a &b", Push}}}, "space"},
		"a long glob":         {User{Name: "a", Grants: []Grant{{strings.Repeat("a", 1025), Push}}}, "too long"},
		"no hash":             {User{Name: "a", Hashes: []string{"plain secret"}}, "none of bcrypt"},
		"a short hash":        {User{Name: "a", Hashes: []string{secret[:59]}}, "none of bcrypt"},
		"a costly hash":       {User{Name: "a", Hashes: []string{costly}}, "cost 15"},
		"a certificate twice": {User{Name: "a", Certificates: []string{"c"}}, `user "a": certificates: "c" is of user "good", too`},
		"one of its own":      {User{Name: "a", Certificates: []string{"d", "d"}}, `certificates: "d" is there twice`},
		"an empty one":        {User{Name: "a", Certificates: []string{""}}, `certificates: one has no name`},
	} {
		_, err := NewUsers([]User{good, c.user})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sss") {
			t.Errorf("%s: the error %q tells a secret", name, err)
		}
	}
}

func TestRightsAreReadAsTheyAreWritten(t *testing.T) {
	for r := Push; r <= Operate; r <<= 1 {
		if got, err := ParseRight(r.String()); got != r || err != nil {
			t.Errorf("%v is read as %v, %v", r, got, err)
		}
	}
	if _, err := ParseRight("write"); err == nil || !strings.Contains(err.Error(), "expected push, take, look, manage, operate") {
		t.Errorf("an unknown right: %v", err)
	}
}

func TestNobodyHasRights(t *testing.T) {
	var nobody *Account // as a user that was taken away while it asked
	star, _ := glob.Compile([]byte("*"))
	if nobody.May(Look, []byte("q")) || nobody.MayAll(Look, star) || nobody.MaySome(Look) {
		t.Error("nobody may look")
	}
}
