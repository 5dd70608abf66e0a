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
	"regexp"
	"slices"
	"strings"
	"time"

	"palmares/tools/must"
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
	must.Main("release", func() { r.run(flag.Args()) })
}

func (r *release) run(platforms []string) {
	var seconds int64
	must.Get(fmt.Sscan(run("git", "log", "-1", "--format=%H %ct"), &r.commit, &seconds))
	r.time = time.Unix(seconds, 0).UTC()
	must.Do(errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)))
	packages := r.npmPackages()
	for _, platform := range platforms {
		fmt.Println("building", platform)
		r.build(platform, packages)
	}
	var sums strings.Builder // in the format of sha256sum
	for _, entry := range must.Get(os.ReadDir(r.out)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(must.Get(os.ReadFile(filepath.Join(r.out, entry.Name())))), entry.Name())
	}
	r.write("SHA256SUMS", []byte(sums.String()))
}

func (r *release) write(name string, data []byte) {
	must.Do(os.WriteFile(filepath.Join(r.out, name), data, 0o644))
}

// build makes the archive of a platform and the list of its components.
func (r *release) build(platform string, packages *document) {
	system, processor, ok := strings.Cut(platform, "/")
	if !ok {
		must.Fail("%s: must have the form linux/amd64", platform)
	}
	name := fmt.Sprintf("palmares-%s-%s-%s", r.version, system, processor)
	work := must.Get(os.MkdirTemp("", "palmares-release-"))
	defer os.RemoveAll(work)
	program, write, ending := filepath.Join(work, "palmares"), writeTar, ".tar.gz"
	if system == "windows" {
		program, write, ending = program+".exe", writeZip, ".zip"
	}
	compile := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program,
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.commit=%s", r.version, r.commit), "./cmd/palmares")
	compile.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
	must.Run(compile)
	components := r.components(program, packages)
	r.write(name+".cdx.json", append(must.Get(json.MarshalIndent(components, "", "  ")), '\n'))
	contents := files{"NOTICES.txt": {r.notices(components), 0o644}}
	contents.add(filepath.Base(program), program, 0o755)
	contents.add("README.md", "README.md", 0o644)
	contents.addFolder("deploy")
	var archive bytes.Buffer
	write(&archive, name, contents, r.time)
	r.write(name+ending, archive.Bytes())
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
func (r *release) components(program string, packages *document) *document {
	d := parse(run(r.lister, "bin", "-json", "-noserial", "-std", "-version", "v"+strings.TrimPrefix(r.version, "v"), program))
	delete(d.Metadata, "timestamp")
	tools, _ := d.Metadata["tools"].([]any)
	for _, tool := range tools {
		delete(tool.(map[string]any), "hashes")
	}
	npm, _ := packages.Metadata["tools"].([]any)
	d.Metadata["tools"] = append(tools, npm...)
	d.Components = append(d.Components, packages.Components...)
	d.Dependencies = append(d.Dependencies, packages.Dependencies...)
	return d
}

// npmPackages lists the packages of the lock file. One of them claims to need other
// versions of its peers than there are, which it works with.
func (r *release) npmPackages() *document {
	return parse(run("npm", "sbom", "--prefix", r.assets, "--package-lock-only", "--legacy-peer-deps", "--sbom-format", "cyclonedx",
		"--omit", "dev", "--omit", "optional", "--sbom-type", "application"))
}

func parse(text string) *document {
	var d document
	must.Do(json.Unmarshal([]byte(text), &d))
	return &d
}

var noticeName = regexp.MustCompile(`(?i)^(LICENSE|LICENCE|COPYING|NOTICE|UNLICENSE)`)

// notices returns the license texts of all components.
func (r *release) notices(d *document) []byte {
	folders := map[string]string{"std": strings.TrimSpace(run("go", "env", "GOROOT"))}
	for line := range strings.Lines(run("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "all")) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folders[name] = folder
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "palmares %s contains these components.\n", r.version)
	for _, c := range d.Components {
		name := fmt.Sprint(c["name"])
		folder := cmp.Or(folders[name], filepath.Join(r.assets, "node_modules", filepath.FromSlash(name)))
		fmt.Fprintf(&out, "\n%s\n%s %v\n", strings.Repeat("=", 80), name, c["version"])
		if c["licenses"] != nil {
			fmt.Fprintf(&out, "%s\n", must.Get(json.Marshal(c["licenses"])))
		}
		entries, err := os.ReadDir(folder)
		if !errors.Is(err, fs.ErrNotExist) { // an optional package of another platform
			must.Do(err)
		}
		for _, entry := range entries {
			if !entry.IsDir() && noticeName.MatchString(entry.Name()) {
				fmt.Fprintf(&out, "\n%s\n", bytes.TrimSpace(must.Get(os.ReadFile(filepath.Join(folder, entry.Name())))))
			}
		}
	}
	return out.Bytes()
}

// file is a file of an archive.
type file struct {
	data []byte
	mode fs.FileMode
}

// files are those of an archive, by path.
type files map[string]file

func (f files) add(name, source string, mode fs.FileMode) {
	f[name] = file{must.Get(os.ReadFile(source)), mode}
}

// addFolder adds the files of a folder that git tracks: others may be secret.
func (f files) addFolder(folder string) {
	for line := range strings.Lines(run("git", "ls-files", "-s", "--", folder)) { // such as "100755 HASH 0\tNAME"
		fields, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(fields, "100755") {
			mode = 0o755
		}
		f.add(name, filepath.FromSlash(name), mode)
	}
}

func writeTar(w io.Writer, folder string, all files, modified time.Time) {
	compressed := must.Get(gzip.NewWriterLevel(w, gzip.BestCompression))
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		header := &tar.Header{Name: path.Join(folder, name), Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: modified, Format: tar.FormatPAX}
		must.Do(archive.WriteHeader(header))
		must.Get(archive.Write(f.data))
	}
	must.Do(errors.Join(archive.Close(), compressed.Close()))
}

func writeZip(w io.Writer, folder string, all files, modified time.Time) {
	archive := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		header := &zip.FileHeader{Name: path.Join(folder, name), Method: zip.Deflate, Modified: modified}
		header.SetMode(all[name].mode)
		must.Get(must.Get(archive.CreateHeader(header)).Write(all[name].data))
	}
	must.Do(archive.Close())
}

func run(name string, args ...string) string { return string(must.Run(exec.Command(name, args...))) }
