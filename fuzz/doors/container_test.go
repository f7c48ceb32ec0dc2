package doors

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
)

const packaging = "../../cmd/holdfast/packaging/"

// imageUser is the user of the image.
const imageUser = 65532

// outside is where a server is for who is not in its container. Loopback is not enough for it.
const outside = "192.0.2.1"

// image is the Dockerfile's, with a binary of this source, in a storage of its own.
type image struct {
	buildah []string // begins each command
	binary  string
	root    string // where its files can be seen
}

func buildImage(t *testing.T) *image {
	t.Helper()
	if !*whole {
		t.Skip("takes longer: make doors")
	}
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip("buildah is not installed: apt install buildah")
	}
	if os.Getuid() != 0 {
		t.Skip("networks and mounts need root")
	}
	dir := t.TempDir()
	i := &image{
		buildah: []string{"buildah", "--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"), "--storage-driver", "vfs"},
		binary:  filepath.Join(dir, "holdfast-linux-"+runtime.GOARCH),
	}
	build := program(t, "go", "", "build", "-o", i.binary, "../../cmd/holdfast")
	build.Env = append(build.Env, "CGO_ENABLED=0")
	output(t, build)
	archive := filepath.Join(dir, "holdfast.tar")
	output(t, program(t, packaging+"image.sh", "", archive, i.binary))
	output(t, i.run(t, "from", "--name", "holdfast", "oci-archive:"+archive))
	// A mount takes the place of the image's volume. In "buildah run" it depends on their order.
	output(t, i.run(t, "config", "--volume", "/data-", "holdfast"))
	i.root = strings.TrimSpace(output(t, i.run(t, "mount", "holdfast")))
	for _, name := range []string{".", "holdfast"} {
		if owner := ownerOf(t, filepath.Join(i.root, name)); owner != 0 {
			t.Errorf("%s of the image is user %d's, who could change the program; want root's", name, owner)
		}
	}
	return i
}

func ownerOf(t *testing.T, name string) uint32 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

func (i *image) run(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return program(t, i.buildah[0], "apt install buildah", append(i.buildah[1:len(i.buildah):len(i.buildah)], args...)...)
}

// container is how a file has the image run.
type container struct {
	*image
	options []string // of buildah, as the file says them
	command []string
	network int // the process that holds it
}

// newNetwork makes a network that has the address of a container, and no other machine.
func newNetwork(t *testing.T) (pid int) {
	t.Helper()
	cmd := program(t, "unshare", "apt install util-linux", "--net", "sh", "-c",
		"ip link set lo up && ip addr add "+outside+"/32 dev lo && echo up && exec cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Skipf("there can be no network: %q, %v", line, err)
	}
	return cmd.Process.Pid
}

// outsideOf returns a command that is in the network and not in the container.
func (c *container) outsideOf(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return program(t, "nsenter", "apt install util-linux", append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", c.network)}, args...)...)
}

// inside returns a command of the image's program in the container.
func (c *container) inside(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	run := append(c.buildah[:len(c.buildah):len(c.buildah)], "run", "--isolation", "chroot")
	run = append(append(run, c.options...), "holdfast", "--", "/holdfast")
	return c.outsideOf(t, append(run, args...)...)
}

// serve starts the server, and returns how it is stopped, which tells its whole log.
func (c *container) serve(t *testing.T) (stop func() string) {
	t.Helper()
	cmd := c.inside(t, c.command...)
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); write.Close() }() // ends with the process, which ends with the test
	log := bufio.NewReader(read)
	said := ""
	for listens := false; !listens; {
		line, err := log.ReadString('\n')
		said += line
		if err != nil {
			t.Fatalf("the server ended with %v, and said:\n%s", <-ended, said)
		}
		listens = strings.Contains(line, "listening") && strings.Contains(line, "redis")
	}
	rest := make(chan string, 1)
	go func() { all, _ := io.ReadAll(log); rest <- string(all) }()
	return func() string {
		if err := syscall.Kill(first(t, cmd.Process.Pid), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		said := <-rest
		if err := <-ended; err != nil {
			t.Errorf("a signal ended the server with %v; it said:\n%s", err, said)
		}
		return said
	}
}

// first returns the first process of a container that a process runs. Runtimes send it the signal.
func first(t *testing.T, pid int) int {
	t.Helper()
	for {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && filepath.Base(name) == "holdfast" {
			return pid
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		children := ""
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			children += string(text)
		}
		if _, none := fmt.Sscan(children, &pid); none != nil {
			t.Fatalf("process %d is %s and runs no holdfast: %v", pid, name, err)
		}
	}
}

// read reads all documents of a file into values of a type.
func read[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	file, err := os.Open(packaging + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for documents := yaml.NewDecoder(file); ; {
		var document any
		var as T
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		text, wrong := json.Marshal(document) // whose names may have capitals or not
		if err := errors.Join(err, wrong, json.Unmarshal(text, &as)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, as)
	}
}

// composed is how a compose file in a folder has the image run, and what checks its health.
func composed(t *testing.T, i *image, name, dir string) (c *container, check []string) {
	t.Helper()
	type service struct {
		Command, Volumes, Tmpfs []string
		Environment             map[string]string
		Healthcheck             struct{ Test []string }
	}
	s := read[struct{ Services map[string]service }](t, name)[0].Services["holdfast"]
	c = &container{image: i, command: s.Command, network: newNetwork(t)}
	for _, volume := range s.Volumes {
		from, to, _ := strings.Cut(volume, ":")
		if !strings.HasPrefix(from, ".") { // one with a name begins as what the image has there
			copied(t, filepath.Join(i.root, to), filepath.Join(dir, from))
		}
		c.options = append(c.options, "-v", filepath.Join(dir, from)+":"+to)
	}
	for _, folder := range s.Tmpfs {
		c.options = append(c.options, "--mount", "type=tmpfs,destination="+folder)
	}
	for name, value := range s.Environment {
		c.options = append(c.options, "-e", name+"="+value)
	}
	return c, s.Healthcheck.Test[2:] // behind CMD and the program
}

// copied makes a folder with the owner and the rights of another one.
func copied(t *testing.T, of, to string) {
	t.Helper()
	info, err := os.Stat(of)
	if err != nil {
		t.Fatal(err)
	}
	if owner := ownerOf(t, of); owner != imageUser || info.Mode().Perm() != 0o700 {
		t.Errorf("%s is of user %d and has mode %v, want %d and 0700", of, owner, info.Mode(), imageUser)
	}
	if err := errors.Join(os.Mkdir(to, info.Mode().Perm()), os.Chown(to, imageUser, imageUser)); err != nil {
		t.Fatal(err)
	}
}

// orchestrated is how kubernetes.yaml has the image run, on a volume as a file system begins it.
func orchestrated(t *testing.T, i *image, dir string) *container {
	t.Helper()
	type pod struct {
		SecurityContext struct{ RunAsUser, RunAsGroup, FSGroup int }
		Containers      []struct {
			Args         []string
			VolumeMounts []struct{ Name, MountPath string }
		}
	}
	type object struct {
		Kind string
		Spec struct{ Template struct{ Spec pod } }
	}
	for _, o := range read[object](t, "kubernetes.yaml") {
		if o.Kind != "StatefulSet" {
			continue
		}
		user, it := o.Spec.Template.Spec.SecurityContext, o.Spec.Template.Spec.Containers[0]
		volume := filepath.Join(dir, it.VolumeMounts[0].Name)
		err := errors.Join(os.Mkdir(volume, 0o700), os.Mkdir(filepath.Join(volume, "lost+found"), 0o700),
			os.Chown(volume, 0, user.FSGroup), os.Chmod(volume, 0o775|fs.ModeSetgid))
		if err != nil {
			t.Fatal(err)
		}
		return &container{image: i, command: it.Args, network: newNetwork(t), options: []string{
			"--user", fmt.Sprintf("%d:%d", user.RunAsUser, user.RunAsGroup), "-v", volume + ":" + it.VolumeMounts[0].MountPath,
		}}
	}
	t.Fatal("kubernetes.yaml has no StatefulSet")
	return nil
}

// page returns the code of OPERATION.md for containers, with the address of the test.
func page(t *testing.T) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../cmd/holdfast/OPERATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### In a container\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range strings.Split(section, "```sh\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		blocks = append(blocks, strings.ReplaceAll(code, "queue.example.com", outside))
	}
	return blocks
}

// standIns has a shell in a folder find the image's program, and what runs it in place of docker.
func standIns(t *testing.T, i *image, dir string) {
	t.Helper()
	docker := `#!/bin/sh
[ "$1" = run ] || exit 0 # what compose does the test does
shift
options=
while :; do
	case $1 in
	--rm | -i) shift ;;
	--user | -v) options="$options $1 $2" && shift 2 ;;
	*) break ;;
	esac
done
shift
exec ` + strings.Join(i.buildah, " ") + ` run --isolation chroot $options holdfast -- /holdfast "$@"
`
	bin := filepath.Join(dir, "bin")
	err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(i.binary, filepath.Join(bin, "holdfast")),
		os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755),
		os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
}

// shell is a command that runs lines in a folder with stand-ins.
func shell(dir, lines string) []string {
	return []string{"sh", "-c", "set -e; cd " + dir + "; PATH=$PWD/bin:$PATH\n" + lines}
}

// lives runs the server, and again on the same volume. Programs outside use it in between. The
// checks find the first one well.
func (c *container) lives(t *testing.T, dir, push, pop string, checks ...*exec.Cmd) {
	t.Helper()
	stop := c.serve(t)
	for _, check := range checks {
		output(t, check)
	}
	output(t, c.outsideOf(t, shell(dir, push)...))
	if log := stop(); !strings.Contains(log, "draining") || !strings.Contains(log, "stopped") {
		t.Errorf("a signal does not drain the server, which says:\n%s", log)
	}
	stop = c.serve(t)
	if got := output(t, c.outsideOf(t, shell(dir, pop)...)); got != "hello\n" {
		t.Errorf("after a restart there is %q, want hello", got)
	}
	stop()
	if owner := ownerOf(t, filepath.Join(dir, "data", "format")); owner != imageUser {
		t.Errorf("the data is user %d's, want %d's", owner, imageUser)
	}
}

func TestAContainerServesAsTheFilesForItSay(t *testing.T) {
	t.Parallel()
	i := buildImage(t)
	plain := []string{"holdfast push jobs.mail hello --redis " + outside + ":6379", "holdfast pop jobs.mail --redis " + outside + ":6379"}
	t.Run("compose.yaml", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		standIns(t, i, dir)
		c, check := composed(t, i, "compose.yaml", dir)
		c.lives(t, dir, plain[0], plain[1], c.inside(t, check...), c.inside(t, "doctor", "/data"), c.inside(t, "backup", "--to", "-"))
		if got := output(t, c.inside(t, "verify", "/data")); !strings.Contains(got, "sound") {
			t.Errorf("verify says %q", got)
		}
	})
	t.Run("compose-tls.yaml", func(t *testing.T) {
		t.Parallel()
		dir, code := t.TempDir(), page(t)
		standIns(t, i, dir)
		output(t, program(t, "sh", "", shell(dir, code[0])[1:]...))
		c, check := composed(t, i, "compose-tls.yaml", dir)
		c.lives(t, dir, code[1], strings.Replace(code[1], "push jobs.mail hello", "pop jobs.mail", 1), c.inside(t, check...))
	})
	t.Run("kubernetes.yaml", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		standIns(t, i, dir)
		c := orchestrated(t, i, dir)
		c.lives(t, dir, plain[0], plain[1], c.outsideOf(t, i.binary, "health", "--admin", outside+":7072"))
	})
}
