package planted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Bug is one change of the source. What it replaces stands there exactly once.
type Bug struct {
	Name     string
	File     string // from storage on; an absolute name is one of the Go system
	Judge    string // a package, its test that finds the bug, and arguments of the test; "" is none
	Old, New string
}

// Always is the judge of a bug that is on, whatever PLANTED says. It need not be in a function.
const Always = "always"

// root is the folder of the module, from the folders of this package and of those beside it.
const root = "../.."

func (b Bug) path() (string, error) {
	if filepath.IsAbs(b.File) {
		return b.File, nil
	}
	return filepath.Abs(filepath.Join(root, "storage", b.File))
}

// Overlay writes a file in dir that has the go command build with bugs that are off. The variable
// PLANTED of the environment turns one on, by its number in bugs, from 1 on.
func Overlay(dir string, bugs []Bug) (name string, err error) {
	sources := make(map[string]*source)
	for _, always := range []bool{true, false} {
		for i, b := range bugs {
			if (b.Judge == Always) != always {
				continue
			}
			if failed := plant(sources, b, i+1); failed != nil {
				err = errors.Join(err, fmt.Errorf("%q: %w", b.Name, failed))
			}
		}
	}
	files, replace := make(map[string]string), make(map[string]string)
	for name, s := range sources {
		if files[name] = s.build(); len(s.calls) > 0 {
			files[filepath.Join(filepath.Dir(name), "planted__.go")] = picks(s.pack, len(bugs))
		}
	}
	for name, text := range files {
		replace[name] = filepath.Join(dir, fmt.Sprintf("with%d.go", len(replace)))
		err = errors.Join(err, os.WriteFile(replace[name], []byte(text), 0o600))
	}
	list, failed := json.Marshal(map[string]any{"Replace": replace})
	name = filepath.Join(dir, "overlay")
	return name, errors.Join(err, failed, os.WriteFile(name, list, 0o600))
}

// plant plants a bug in its file, which is read for the first one.
func plant(sources map[string]*source, b Bug, n int) error {
	name, err := b.path()
	if err != nil {
		return err
	}
	if sources[name] == nil {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		sources[name] = &source{text: string(text), calls: make(map[int]string)}
	}
	s := sources[name]
	if times := strings.Count(s.text, b.Old); times != 1 {
		return fmt.Errorf("%s has %d times what is to be replaced: %q", b.File, times, b.Old)
	}
	if b.Judge == Always {
		s.text = strings.Replace(s.text, b.Old, b.New, 1)
		return nil
	}
	return s.plant(b, n)
}
