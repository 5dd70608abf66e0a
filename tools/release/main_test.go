package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
)

// Two clones in different folders give the same bytes; the list of components has the Go
// modules of the program and no others; and the image that is built from the archive
// serves as a normal user with a read-only root. It takes minutes, and needs npm and git.
func TestRelease(t *testing.T) {
	first, second := buildIn(t, filepath.Join(t.TempDir(), "a")), buildIn(t, filepath.Join(t.TempDir(), "another", "folder"))
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
	archive := filepath.Join(folder, "palmares-0.0.0-linux-amd64.tar.gz")
	check(t, os.WriteFile(archive, first[filepath.Base(archive)], 0o644))
	contents := unpack(t, archive)
	if bytes.Contains(contents["palmares"], []byte(t.Name())) { // the folders of the clones have this name
		t.Error("got the folder of the sources in the program, want none")
	}
	for _, name := range []string{"README.md", "NOTICES.txt", "deploy/palmares.service"} {
		if len(contents[name]) == 0 {
			t.Errorf("got no %s in the archive, want it", name)
		}
	}
	t.Run("components", func(t *testing.T) {
		testComponents(t, contents["palmares"], first["palmares-0.0.0-linux-amd64.cdx.json"], string(contents["NOTICES.txt"]))
	})
	t.Run("image", func(t *testing.T) { testImage(t, folder) })
}

const sumsFile = "SHA256SUMS"

// buildIn clones the repository and returns the files of its release.
func buildIn(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	check(t, err)
	mustRun(t, "", "git", "clone", "-q", strings.TrimSpace(string(top)), folder)
	mustRun(t, folder, "make", "release", "VERSION=0.0.0", "PLATFORMS=linux/amd64")
	files := map[string][]byte{}
	entries, err := os.ReadDir(filepath.Join(folder, "dist"))
	check(t, err)
	for _, entry := range entries {
		files[entry.Name()], err = os.ReadFile(filepath.Join(folder, "dist", entry.Name()))
		check(t, err)
	}
	return files
}

func testComponents(t *testing.T, program, list []byte, notices string) {
	linked, err := elf.NewFile(bytes.NewReader(program))
	check(t, err)
	if libraries, err := linked.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("got shared libraries %v, %v, want none", libraries, err)
	}
	build, err := buildinfo.Read(bytes.NewReader(program))
	check(t, err)
	want := []string{"std@" + build.GoVersion}
	for _, m := range build.Deps {
		want = append(want, m.Path+"@"+m.Version)
	}
	var d document
	check(t, json.Unmarshal(list, &d))
	var got []string
	npm := 0
	for _, c := range d.Components {
		name, purl := fmt.Sprintf("%v@%v", c["name"], c["version"]), fmt.Sprint(c["purl"])
		switch {
		case strings.HasPrefix(purl, "pkg:golang/"):
			got = append(got, name)
		case strings.HasPrefix(purl, "pkg:npm/"):
			npm++
		default:
			t.Errorf("got component %s, want one of Go or npm", purl)
		}
		if !strings.Contains(notices, "\n"+strings.Replace(name, "@"+fmt.Sprint(c["version"]), " "+fmt.Sprint(c["version"]), 1)+"\n") {
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

// testImage follows the steps of the Containerfile in a folder, and runs the image as its
// user with a read-only root. It does not run steps that need the network.
func testImage(t *testing.T, folder string) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root folder of a process")
	}
	stages := map[string]string{}
	var root, user string
	environment, start := []string{}, []string{}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "Containerfile"))
	check(t, err)
	for line := range strings.Lines(string(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(strings.ReplaceAll(rest, "${TARGETARCH}", "amd64"))
		switch instruction {
		case "", "#", "ARG", "EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK":
		case "FROM":
			root = t.TempDir()
			check(t, os.Chmod(root, 0o755))
			if len(words) == 3 {
				stages[words[2]] = root
				addShell(t, root)
			}
		case "ADD":
			archives, err := filepath.Glob(filepath.Join(folder, words[0]))
			check(t, err)
			check(t, os.MkdirAll(filepath.Join(root, words[1]), 0o755))
			mustRun(t, "", "tar", "-xzf", archives[0], "-C", filepath.Join(root, words[1]))
		case "RUN":
			if strings.Contains(rest, "apt-get") {
				t.Logf("not run, because it needs the network: %s", rest)
				check(t, os.MkdirAll(filepath.Join(root, "etc/ssl/certs"), 0o755))
				check(t, os.WriteFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"), []byte("installed by the step above\n"), 0o644))
				continue
			}
			mustRun(t, "", "chroot", root, "/bin/sh", "-ec", rest)
		case "COPY":
			owner, from := "0:0", ""
			for strings.HasPrefix(words[0], "--") {
				option, value, _ := strings.Cut(words[0], "=")
				switch words = words[1:]; option {
				case "--chown":
					owner = value
				case "--from":
					from = stages[value]
				}
			}
			mustRun(t, "", "sh", "-ec", `chown -R "$1" "$2" && cp -a "$2/." "$3"`, "sh", owner, filepath.Join(from, words[0]), root)
			check(t, os.Chmod(root, 0o755))
		case "USER":
			user = rest
		case "ENV":
			environment = append(environment, words...)
		case "ENTRYPOINT", "CMD":
			var words []string
			check(t, json.Unmarshal([]byte(rest), &words))
			start = append(start, words...)
		default:
			t.Fatalf("got the instruction %s, want one that this test follows", instruction)
		}
	}
	address := freeAddress(t)
	environment = append(environment, "PALMARES_LISTEN="+address)
	inImage := func(args ...string) *exec.Cmd {
		const script = `mount --bind "$1" "$1" && mount --bind "$1/data" "$1/data" && mount --bind "$1/tmp" "$1/tmp" && mount -o remount,ro,bind "$1" && shift && exec "$@"`
		cmd := exec.Command("unshare", append([]string{"-m", "sh", "-ec", script, "sh", root, "chroot", "--userspec=" + user, root}, args...)...)
		cmd.Env = environment
		return cmd
	}
	if inImage("/palmares", "backup", "/file").Run() == nil || exists(filepath.Join(root, "file")) {
		t.Error("got a file in the root folder, want it to be read-only")
	}
	server := inImage(append(start, "--demo")...)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	check(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for deadline := time.Now().Add(2 * time.Minute); inImage("/palmares", "health").Run() != nil; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got no healthy server, want one\n%s", &log)
		}
	}
	response, err := http.Get("http://" + address + "/api/v1/tools/plume")
	check(t, err)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got status %d, want 200", response.StatusCode)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
	check(t, err)
	if uid := regexp.MustCompile(`(?m)^Uid:\s+(\d+)`).FindSubmatch(status); uid == nil || string(uid[1]) != strings.Split(user, ":")[0] || user == "" || string(uid[1]) == "0" {
		t.Errorf("got user %s, want %s", uid, user)
	}
}

// addShell copies a shell with the programs of the Containerfile, and the libraries that
// they need.
func addShell(t *testing.T, root string) {
	for _, name := range []string{"sh", "mkdir", "cp"} {
		program, err := exec.LookPath(name)
		check(t, err)
		libraries, err := exec.Command("ldd", program).Output()
		check(t, err)
		for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1), program) {
			target := filepath.Join(root, file)
			if file == program {
				target = filepath.Join(root, "bin", name)
			}
			mustRun(t, "", "sh", "-ec", `mkdir -p "$(dirname "$2")" && cp -L "$1" "$2"`, "sh", file, target)
		}
	}
}

func unpack(t *testing.T, archive string) map[string][]byte {
	file, err := os.Open(archive)
	check(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	check(t, err)
	files := map[string][]byte{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		check(t, err)
		_, name, _ := strings.Cut(header.Name, "/")
		files[name], err = io.ReadAll(reader)
		check(t, err)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func mustRun(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
