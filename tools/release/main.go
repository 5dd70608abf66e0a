// Release builds the archives of a release for all platforms, each with a list of its
// components (CycloneDX), and their checksums. The same commit gives the same bytes in
// any folder and for any user, because nothing depends on where, when and by whom it is
// built.
//
//	make release
//	make release PLATFORMS=linux/amd64
//
// Start reading at build, which makes one archive.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// release is what all archives have in common.
type release struct {
	version, commit string
	time            time.Time // of the commit; that of all files in the archives
	out             string
	lister          string // the program that lists the modules of a binary
	assets          string // the folder of the npm project whose packages are embedded
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "", "version, such as 0.2.0")
	flag.StringVar(&r.out, "out", "dist", "folder for the archives")
	flag.StringVar(&r.lister, "lister", "", "path of cyclonedx-gomod")
	flag.StringVar(&r.assets, "assets", "", "folder of the npm project")
	flag.Parse()
	if err := r.run(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func (r *release) run(platforms []string) error {
	head, err := output(nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(string(head), &r.commit, &seconds); err != nil {
		return err
	}
	r.time = time.Unix(seconds, 0).UTC()
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	packages, err := r.npmPackages()
	if err != nil {
		return err
	}
	for _, platform := range platforms {
		fmt.Println("building", platform)
		if err := r.build(platform, packages); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return r.writeSums()
}

// build makes the archive of a platform and the list of its components.
func (r *release) build(platform string, packages *document) error {
	system, processor, ok := strings.Cut(platform, "/")
	if !ok {
		return errors.New("must have the form linux/amd64")
	}
	name := fmt.Sprintf("palmares-%s-%s-%s", r.version, system, processor)
	work, err := os.MkdirTemp("", "palmares-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "palmares")
	if system == "windows" {
		program += ".exe"
	}
	_, err = output([]string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0"},
		"go", "build", "-trimpath", "-buildvcs=false", "-o", program,
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.commit), "./cmd/palmares")
	if err != nil {
		return err
	}
	components, err := r.components(program, packages)
	if err != nil {
		return err
	}
	if err := components.write(filepath.Join(r.out, name+".cdx.json")); err != nil {
		return err
	}
	notices, err := r.notices(components)
	if err != nil {
		return err
	}
	contents := files{"NOTICES.txt": {notices, 0o644}}
	if err := errors.Join(contents.add(filepath.Base(program), program, 0o755), contents.add("README.md", "README.md", 0o644), contents.addFolder("deploy")); err != nil {
		return err
	}
	write, ending := writeTar, ".tar.gz"
	if system == "windows" {
		write, ending = writeZip, ".zip"
	}
	var archive bytes.Buffer
	if err := write(&archive, name, contents, r.time); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name+ending), archive.Bytes(), 0o644)
}

// document is a list of components. What is not read is left as the tools wrote it.
type document struct {
	Schema       string           `json:"$schema"`
	Format       string           `json:"bomFormat"`
	SpecVersion  string           `json:"specVersion"`
	Version      int              `json:"version"`
	Metadata     map[string]any   `json:"metadata"`
	Components   []map[string]any `json:"components"`
	Dependencies []map[string]any `json:"dependencies"`
}

// components lists the Go modules of a program and the npm packages that are embedded in
// it, without what differs from run to run: times, and hashes of the tools.
func (r *release) components(program string, packages *document) (*document, error) {
	text, err := output(nil, r.lister, "bin", "-json", "-noserial", "-std", "-version", "v"+strings.TrimPrefix(r.version, "v"), program)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	delete(d.Metadata, "timestamp")
	tools, _ := d.Metadata["tools"].([]any)
	for _, tool := range tools {
		delete(tool.(map[string]any), "hashes")
	}
	npm, _ := packages.Metadata["tools"].([]any)
	d.Metadata["tools"] = append(tools, npm...)
	d.Components = append(d.Components, packages.Components...)
	d.Dependencies = append(d.Dependencies, packages.Dependencies...)
	return &d, nil
}

// npmPackages lists the packages of the lock file. One of them claims to need other
// versions of its peers than there are, which it works with.
func (r *release) npmPackages() (*document, error) {
	text, err := output(nil, "npm", "sbom", "--prefix", r.assets, "--package-lock-only", "--legacy-peer-deps", "--sbom-format", "cyclonedx",
		"--omit", "dev", "--omit", "optional", "--sbom-type", "application")
	if err != nil {
		return nil, err
	}
	var d document
	return &d, json.Unmarshal(text, &d)
}

func (d *document) write(name string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// notices returns the license texts of all components.
func (r *release) notices(d *document) ([]byte, error) {
	listed, err := output(nil, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	root, err := output(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders := map[string]string{"std": strings.TrimSpace(string(root))}
	for line := range strings.Lines(string(listed)) {
		if name, folder, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			folders[name] = folder
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "palmares %s contains these components.\n", r.version)
	for _, c := range d.Components {
		name := fmt.Sprint(c["name"])
		folder := cmp.Or(folders[name], filepath.Join(r.assets, "node_modules", filepath.FromSlash(name)))
		fmt.Fprintf(&out, "\n%s\n%s %v\n", strings.Repeat("=", 80), name, c["version"])
		if licenses, err := json.Marshal(c["licenses"]); err == nil && c["licenses"] != nil {
			fmt.Fprintf(&out, "%s\n", licenses)
		}
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // an optional package of another platform
			return nil, err
		}
		for _, entry := range entries {
			if upper := strings.ToUpper(entry.Name()); entry.IsDir() || !isNotice(upper) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "\n%s\n", bytes.TrimSpace(text))
		}
	}
	return out.Bytes(), nil
}

func isNotice(name string) bool {
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// file is a file of an archive.
type file struct {
	data []byte
	mode fs.FileMode
}

// files are those of an archive, by path.
type files map[string]file

func (f files) add(name, source string, mode fs.FileMode) error {
	data, err := os.ReadFile(source)
	f[name] = file{data, mode}
	return err
}

// addFolder adds the files of a folder that git tracks: others may be secret.
func (f files) addFolder(folder string) error {
	listed, err := output(nil, "git", "ls-files", "-s", "--", folder)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(listed)) { // such as "100755 HASH 0\tNAME"
		fields, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(fields, "100755") {
			mode = 0o755
		}
		if err := f.add(name, filepath.FromSlash(name), mode); err != nil {
			return err
		}
	}
	return nil
}

func writeTar(w io.Writer, folder string, all files, modified time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		header := &tar.Header{Name: path.Join(folder, name), Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: modified, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func writeZip(w io.Writer, folder string, all files, modified time.Time) error {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		header := &zip.FileHeader{Name: path.Join(folder, name), Method: zip.Deflate, Modified: modified}
		header.SetMode(all[name].mode)
		f, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := f.Write(all[name].data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeSums writes the checksums in the format of sha256sum.
func (r *release) writeSums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// output runs a command and returns what it prints.
func output(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, &failure)
	}
	return out, nil
}
