package doors

import "testing"

func TestKombusOwnCases(t *testing.T) {
	t.Parallel()
	python(t, "celery")
	output(t, pythonProgram(t, start(t), "-m", "unittest", "-q",
		"tests.test_transport", "tests.test_silence", "tests.test_backend"))
}
