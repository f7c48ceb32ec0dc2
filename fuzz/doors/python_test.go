package doors

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonPackage is the folder of the Python package.
const pythonPackage = "../../netproto/client/python"

// pythonProgram returns a command of Python that finds the package, and the server.
func pythonProgram(t *testing.T, s *server, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, python(t, "redis"), "", args...)
	folder, err := filepath.Abs(pythonPackage)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = folder
	cmd.Env = append(cmd.Env, "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1", "HOLDFAST_URL=redis://"+s.addr)
	return cmd
}

func TestThePythonPackage(t *testing.T) {
	t.Parallel()
	for _, tests := range []string{"calls"} {
		t.Run(tests, func(t *testing.T) {
			t.Parallel()
			output(t, pythonProgram(t, start(t), "-m", "unittest", "tests.test_"+tests))
		})
	}
}
