package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// readYAML reads all documents of a file of packaging into values of a type.
func readYAML[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	for documents := yaml.NewDecoder(strings.NewReader(string(readFile(t, "packaging/"+name)))); ; {
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

// outlasts says that a grace period leaves a server time to drain, and to close its folder.
func outlasts(t *testing.T, grace time.Duration) bool {
	t.Helper()
	drain, err := time.ParseDuration(strings.TrimSuffix(inForce(t, command{})["drain"], " (default)"))
	if err != nil {
		t.Fatal(err)
	}
	return grace >= 2*drain
}

// servesLocally starts a server as a file says, at loopback and on free ports.
func servesLocally(t *testing.T, args []string) *testServer {
	t.Helper()
	free := regexp.MustCompile(`^0\.0\.0\.0:\d+$`)
	local := slices.Clone(args[1:]) // behind serve
	for i, arg := range local {
		local[i] = free.ReplaceAllString(arg, "0.0.0.0:0")
	}
	return serve(t, t.TempDir(), local...)
}

func TestComposeFilesFitTheImage(t *testing.T) {
	t.Parallel()
	check := regexp.MustCompile(`CMD (.*)$`).FindStringSubmatch(instructions(t, "HEALTHCHECK")[0])[1]
	want, volume := append([]string{"CMD"}, unsplit(t, check)...), "data:"+instructions(t, "VOLUME")[0]
	for _, name := range []string{"compose.yaml", "compose-tls.yaml"} {
		file := readYAML[struct {
			Services map[string]struct {
				Command, Volumes []string
				Healthcheck      struct{ Test []string }
				Grace            string `json:"stop_grace_period"`
			}
			Volumes map[string]any
		}](t, name)[0]
		s := file.Services["holdfast"]
		grace, err := time.ParseDuration(s.Grace)
		if _, named := file.Volumes["data"]; !named || err != nil || !outlasts(t, grace) || !slices.Equal(s.Healthcheck.Test, want) || !slices.Contains(s.Volumes, volume) {
			t.Errorf("%s: %+v, %v; want the volume %s, the check %q, and a grace period twice as long as a drain", name, file, err, volume, want)
		}
		if name == "compose.yaml" {
			servesLocally(t, s.Command).must(t, "push", "jobs", "hello")
		}
	}
}

// object is what the test reads of those in a manifest.
type object struct {
	Kind string
	Spec struct {
		Replicas             int
		Template             struct{ Spec pod }
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } }
	}
}

type pod struct {
	Grace           int `json:"terminationGracePeriodSeconds"`
	SecurityContext struct{ RunAsUser, RunAsGroup, FSGroup int }
	Containers      []struct {
		Args                          []string
		LivenessProbe, ReadinessProbe struct{ HTTPGet struct{ Path, Port string } }
		VolumeMounts                  []struct{ Name, MountPath string }
	}
}

func TestTheManifestForKubernetesFitsTheImage(t *testing.T) {
	objects := readYAML[object](t, "kubernetes.yaml")
	at := slices.IndexFunc(objects, func(o object) bool { return o.Kind == "StatefulSet" })
	if at < 0 {
		t.Fatal("it has no StatefulSet")
	}
	set := objects[at].Spec
	pod := set.Template.Spec
	if user := pod.SecurityContext; set.Replicas != 1 || !outlasts(t, time.Duration(pod.Grace)*time.Second) ||
		fmt.Sprintf("%d:%d", user.RunAsUser, user.RunAsGroup) != instructions(t, "USER")[0] || user.FSGroup != user.RunAsGroup {
		t.Errorf("%+v, want one server with the image's user, whose group has the volume, and a grace period twice as long as a drain", set)
	}
	it := pod.Containers[0]
	if mount := it.VolumeMounts[0]; mount.MountPath != instructions(t, "VOLUME")[0] || mount.Name != set.VolumeClaimTemplates[0].Metadata.Name {
		t.Errorf("%+v is not the claim at the image's volume", mount)
	}
	s := servesLocally(t, it.Args)
	s.must(t, "push", "jobs", "hello")
	for _, probe := range []string{it.LivenessProbe.HTTPGet.Path, it.ReadinessProbe.HTTPGet.Path} {
		answer, err := http.Get("http://" + s.addrs["admin"] + probe)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d, want 200", probe, answer.StatusCode)
		}
	}
}
