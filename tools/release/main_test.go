package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/tools/must"
)

const (
	name     = "palmares-0.0.0-linux-amd64"
	sumsFile = "SHA256SUMS"
)

// Two clones in different folders give the same bytes; the list of components has the Go
// modules of the program and no others; and the image that is built from the archive
// serves as a normal user with a read-only root. It takes minutes, and needs npm and git.
func TestRelease(t *testing.T) {
	first, second := buildIn(filepath.Join(t.TempDir(), "a")), buildIn(filepath.Join(t.TempDir(), "another", "folder"))
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s: got different bytes in another folder, want the same", name)
		}
		if name != sumsFile && !strings.Contains(string(first[sumsFile]), fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)) {
			t.Errorf("%s: got no checksum, want one in %s", name, first[sumsFile])
		}
	}
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("got %d and %d files, want an archive, its components and checksums", len(first), len(second))
	}
	folder := t.TempDir()
	archive := filepath.Join(folder, name+".tar.gz")
	must.Do(os.WriteFile(archive, first[name+".tar.gz"], 0o644))
	run("tar", "-xzf", archive, "-C", folder)
	program := filepath.Join(folder, name, "palmares")
	if bytes.Contains(must.Get(os.ReadFile(program)), []byte(t.Name())) { // the folders of the clones have this name
		t.Error("got the folder of the sources in the program, want none")
	}
	for _, file := range []string{"README.md", "NOTICES.txt", "deploy/palmares.service"} {
		if info, err := os.Stat(filepath.Join(folder, name, file)); err != nil || info.Size() == 0 {
			t.Errorf("got no %s in the archive, want it", file)
		}
	}
	t.Run("components", func(t *testing.T) {
		testComponents(t, program, string(first[name+".cdx.json"]), string(must.Get(os.ReadFile(filepath.Join(folder, name, "NOTICES.txt")))))
	})
	t.Run("image", func(t *testing.T) { testImage(t, archive) })
}

// buildIn clones the repository and returns the files of its release.
func buildIn(folder string) map[string][]byte {
	run("git", "clone", "-q", strings.TrimSpace(run("git", "rev-parse", "--show-toplevel")), folder)
	run("make", "-C", folder, "release", "VERSION=0.0.0", "PLATFORMS=linux/amd64")
	files := map[string][]byte{}
	for _, entry := range must.Get(os.ReadDir(filepath.Join(folder, "dist"))) {
		files[entry.Name()] = must.Get(os.ReadFile(filepath.Join(folder, "dist", entry.Name())))
	}
	return files
}

func testComponents(t *testing.T, program, list, notices string) {
	if libraries, err := must.Get(elf.Open(program)).ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("got shared libraries %v, %v, want none", libraries, err)
	}
	build := must.Get(buildinfo.ReadFile(program))
	want := []string{"std " + build.GoVersion}
	for _, m := range build.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	npm := 0
	for _, c := range parse(list).Components {
		name, purl := fmt.Sprintf("%v %v", c["name"], c["version"]), fmt.Sprint(c["purl"])
		switch {
		case strings.HasPrefix(purl, "pkg:golang/"):
			got = append(got, name)
		case strings.HasPrefix(purl, "pkg:npm/"):
			npm++
		default:
			t.Errorf("got component %s, want one of Go or npm", purl)
		}
		if !strings.Contains(notices, "\n"+name+"\n") {
			t.Errorf("got no notice of %s, want one", name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got Go modules %v, want those of the program, %v", got, want)
	}
	if npm < 100 {
		t.Errorf("got %d npm packages, want all that are embedded", npm)
	}
}

var copied = regexp.MustCompile(`^--from=(\w+) (?:--chown=(\S+) )?(\S+) /$`)

// testImage follows the steps of the Containerfile, and runs the image as its user with a
// read-only root. It does not run steps that need the network.
func testImage(t *testing.T, archive string) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder of a process")
	}
	stages := map[string]string{}
	var root, user string
	var environment, start []string
	for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "Containerfile"))))) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch words := strings.Fields(rest); instruction {
		case "", "#", "ARG", "EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK":
		case "FROM":
			root = t.TempDir()
			must.Do(os.Chmod(root, 0o755))
			if len(words) == 3 {
				stages[words[2]] = root
			}
		case "ADD":
			must.Do(os.MkdirAll(filepath.Join(root, words[1]), 0o755))
			run("tar", "-xzf", archive, "-C", filepath.Join(root, words[1]))
		case "RUN":
			if strings.Contains(rest, "apt-get") { // needs the network
				rest = "mkdir -p /etc/ssl/certs && echo installed > /etc/ssl/certs/ca-certificates.crt"
			}
			const withPrograms = `for of in bin lib lib64 usr; do mkdir -p "$1/$of" && mount --bind "/$of" "$1/$of"; done; chroot "$1" /bin/sh -ec "$2"`
			run("unshare", "-m", "sh", "-ec", withPrograms, "sh", root, rest)
		case "COPY":
			c := copied.FindStringSubmatch(rest)
			run("sh", "-ec", `chown -R "${1:-0:0}" "$2" && cp -a "$2/." "$3" && chmod 755 "$3"`, "sh", c[2], filepath.Join(stages[c[1]], c[3]), root)
		case "USER":
			user = rest
		case "ENV":
			environment = append(environment, words...)
		case "ENTRYPOINT", "CMD":
			var words []string
			must.Do(json.Unmarshal([]byte(rest), &words))
			start = append(start, words...)
		default:
			t.Fatalf("got the instruction %s, want one that this test follows", instruction)
		}
	}
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	address := listener.Addr().String()
	must.Do(listener.Close())
	inImage := func(args ...string) *exec.Cmd {
		const script = `mount --bind "$1" "$1" && mount --bind "$1/data" "$1/data" && mount --bind "$1/tmp" "$1/tmp" && ` +
			`mount -o remount,ro,bind "$1" && shift && exec "$@"`
		cmd := exec.Command("unshare", append([]string{"-m", "sh", "-ec", script, "sh", root, "chroot", "--userspec=" + user, root}, args...)...)
		cmd.Env = append(environment, "PALMARES_LISTEN="+address)
		return cmd
	}
	written := inImage("/palmares", "backup", "/file").Run() == nil
	if _, err := os.Stat(filepath.Join(root, "file")); written || err == nil {
		t.Error("got a file in the root folder, want it to be read-only")
	}
	server := inImage(append(start, "--demo")...)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	must.Do(server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for deadline := time.Now().Add(2 * time.Minute); inImage("/palmares", "health").Run() != nil; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got no healthy server, want one\n%s", &log)
		}
	}
	response := must.Get(http.Get("http://" + address + "/api/v1/tools/plume"))
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got status %d, want 200", response.StatusCode)
	}
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid)))
	uid, _, _ := strings.Cut(user, ":")
	if uid == "" || uid == "0" || !regexp.MustCompile(`(?m)^Uid:\s+`+uid+`\s`).Match(status) {
		t.Errorf("got status %s, want user %s", status, user)
	}
}
