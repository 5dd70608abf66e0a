package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// deployFile is one of what an operator starts from.
func deployFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// documents are what a YAML file holds.
func documents(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(deployFile(t, name))); ; {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, document)
	}
}

// at goes down a path of keys and numbers; nil where there is nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			entries, _ := value.(map[string]any)
			value = entries[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}

func keysOf(value any) (keys []string) {
	entries, _ := value.(map[string]any)
	for key := range entries {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// knownSettings are the variables that palmares reads.
func knownSettings(t *testing.T) []string {
	t.Helper()
	parser, err := kong.New(&commandLine{}, kong.Name("palmares"))
	if err != nil {
		t.Fatal(err)
	}
	names := settingNames(parser.Model)
	if len(names) < 20 || !slices.Contains(names, "DATABASE_URL") {
		t.Fatalf("only %v", names)
	}
	return names
}

// variablesOf are the names that a file of variables sets, also in comments.
func variablesOf(text string) (names []string) {
	for _, found := range regexp.MustCompile(`(?m)^#?([A-Z][A-Z_]+)=`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// What is deployed sets nothing that palmares does not know.
func TestDeployNamesRealSettings(t *testing.T) {
	t.Parallel()
	known := knownSettings(t)
	given := map[string][]string{
		"compose.yml":                    keysOf(at(documents(t, "compose.yml")[0], "x-environment")),
		"kubernetes/config.yaml":         keysOf(at(documents(t, "kubernetes/config.yaml")[0], "data")),
		"kubernetes/secret.example.yaml": keysOf(at(documents(t, "kubernetes/secret.example.yaml")[0], "stringData")),
		"palmares.env.example":           variablesOf(deployFile(t, "palmares.env.example")),
	}
	for file, names := range given {
		if len(names) < 4 {
			t.Errorf("%s sets only %v", file, names)
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s sets %s, which palmares does not know", file, name)
			}
		}
	}
	// Anywhere else, what only ours begin with is enough to go by.
	ours := regexp.MustCompile(ourPrefix + `[A-Z_]+`)
	err := filepath.WalkDir(filepath.Join("..", "..", "deploy"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range ours.FindAllString(string(text), -1) {
			if !slices.Contains(known, strings.TrimSuffix(name, "_")) && !strings.HasSuffix(name, "_") {
				t.Errorf("%s names %s, which palmares does not know", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// longestEnd is how long a server may take to end, once it is told to.
const longestEnd = lameDuck + drainTimeout + backgroundTimeout

func lasts(t *testing.T, what string, value any) time.Duration {
	t.Helper()
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return d
}

func TestComposeFile(t *testing.T) {
	t.Parallel()
	file := documents(t, "compose.yml")[0]
	services := keysOf(at(file, "services"))
	replicas := 0
	for _, name := range services {
		service := at(file, "services", name)
		for _, other := range keysOf(at(service, "depends_on")) {
			if !slices.Contains(services, other) {
				t.Errorf("%s waits for %s, which there is not", name, other)
			}
		}
		if at(service, "healthcheck") == nil {
			t.Errorf("nobody asks %s for its health", name)
		}
		if strings.HasPrefix(name, "palmares-") {
			replicas++
			if grace := lasts(t, name, at(service, "stop_grace_period")); grace <= longestEnd {
				t.Errorf("%s is killed after %s, and may take %s", name, grace, longestEnd)
			}
			if got := at(service, "healthcheck", "test", 2); got != "health" {
				t.Errorf("%s: health is asked by %v", name, got)
			}
			if !strings.Contains(deployFile(t, "nginx.conf"), "server "+name+":8080 ") {
				t.Errorf("nginx sends nothing to %s", name)
			}
		}
		volumes, _ := at(service, "volumes").([]any)
		for _, volume := range volumes {
			source, _, _ := strings.Cut(volume.(string), ":")
			if !strings.HasPrefix(source, "./") && !slices.Contains(keysOf(at(file, "volumes")), source) {
				t.Errorf("%s: there is no volume %s", name, source)
			}
		}
	}
	if replicas != 3 {
		t.Errorf("%d servers", replicas)
	}
	if proxy, trusted := at(file, "services", "nginx", "networks", "inside", "ipv4_address"), at(file, "x-environment", "TRUSTED_PROXIES"); proxy == nil || proxy != trusted {
		t.Errorf("nginx is at %v, and %v is trusted", proxy, trusted)
	}

	// Everything that is asked for is in the example, and no secret has a value.
	example := variablesOf(deployFile(t, ".env.example"))
	var asked []string
	for _, found := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(deployFile(t, "compose.yml"), -1) {
		asked = append(asked, found[1])
	}
	slices.Sort(asked)
	slices.Sort(example)
	if asked = slices.Compact(asked); !slices.Equal(asked, example) {
		t.Errorf("compose.yml asks for %v, and .env.example has %v", asked, example)
	}
	if set := regexp.MustCompile(`(?m)^\w*(PASSWORD|SECRET|KEY)\w*=.+`).FindString(deployFile(t, ".env.example")); set != "" {
		t.Errorf("a secret is committed: %s", set)
	}
}

func TestKubernetesFiles(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo")
	deployment := documents(t, "kubernetes/deployment.yaml")[0]
	pod := at(deployment, "spec", "template", "spec")
	container := at(pod, "containers", 0)
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		path, _ := at(container, probe, "httpGet", "path").(string)
		if code, _ := s.get(t, path); code != 200 {
			t.Errorf("%s asks for %q: %d", probe, path, code)
		}
	}
	if path := at(container, "livenessProbe", "httpGet", "path"); path != "/healthz" {
		t.Errorf("a lost database restarts every pod: %v", path)
	}
	period, _ := at(container, "readinessProbe", "periodSeconds").(int)
	times, _ := at(container, "readinessProbe", "failureThreshold").(int)
	if period*times < 60 {
		t.Errorf("a database that is away for %d s takes every pod out of service, and what is cached with them", period*times)
	}
	if port := at(container, "ports", 0); at(port, "name") != "http" || at(port, "containerPort") != 8080 {
		t.Errorf("it listens on %v", port)
	}
	delay := lasts(t, "PALMARES_DRAIN_DELAY", at(documents(t, "kubernetes/config.yaml")[0], "data", "PALMARES_DRAIN_DELAY"))
	grace, _ := at(pod, "terminationGracePeriodSeconds").(int)
	if time.Duration(grace)*time.Second <= delay+longestEnd {
		t.Errorf("a pod is killed after %d s, and may take %s", grace, delay+longestEnd)
	}
	if at(pod, "securityContext", "runAsNonRoot") != true || at(container, "securityContext", "readOnlyRootFilesystem") != true {
		t.Error("a pod may do more than it needs")
	}
	resources, _ := at(documents(t, "kubernetes/kustomization.yaml")[0], "resources").([]any)
	for _, name := range resources {
		for _, document := range documents(t, "kubernetes/"+name.(string)) {
			if document["kind"] == nil || at(document, "metadata", "name") != "palmares" {
				t.Errorf("%v: %v", name, document)
			}
		}
	}
	if kustomize, err := exec.LookPath("kubectl"); err == nil {
		if out, err := exec.Command(kustomize, "kustomize", filepath.Join("..", "..", "deploy", "kubernetes")).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	documents(t, "kubernetes/migrate.yaml")
}

// What the image is built with is what the Makefile has, from files that are there.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(deployFile(t, "Containerfile"), "\\\n", " ")
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "RUN":
			if words[1] == "make" {
				made++
				if !strings.Contains(string(makefile), "\n"+words[2]+":") {
					t.Errorf("there is no make %s", words[2])
				}
			}
		case "COPY":
			if strings.HasPrefix(words[1], "--from") {
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join("..", "..", source)); err != nil {
					t.Errorf("COPY: %v", err)
				}
			}
		}
	}
	last := text[strings.LastIndex(text, "\nFROM "):]
	for _, line := range []string{"FROM scratch\n", "\nUSER 65534:65534\n", `CMD ["/palmares", "health"]`, "\nENTRYPOINT [\"/palmares\"]\nCMD [\"serve\"]\n", "ca-certificates.crt"} {
		if !strings.Contains(last, line) {
			t.Errorf("the image lacks %q", line)
		}
	}
	if made != 2 || strings.Contains(last, "RUN") {
		t.Errorf("%d steps are made, or the last stage runs something", made)
	}
	version := regexp.MustCompile(`golang:(\d+\.\d+)`).FindStringSubmatch(text)
	module, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if version == nil || !bytes.Contains(module, []byte("\ngo "+version[1])) {
		t.Errorf("it is built with Go %v, which go.mod does not ask for", version)
	}
}

func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	unit := deployFile(t, "palmares.service")
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(.+)$`).FindStringSubmatch(unit)
	if stop == nil || lasts(t, "TimeoutStopSec", stop[1]) <= longestEnd {
		t.Errorf("it is killed after %v, and may take %s", stop, longestEnd)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		testkit.CannotRun(t, "there is no systemd to read the unit")
	}
	file := filepath.Join(t.TempDir(), "palmares.service")
	installed := strings.ReplaceAll(unit, "/usr/local/bin/palmares", os.Args[0])
	if err := os.WriteFile(file, []byte(installed), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || bytes.Contains(out, []byte("palmares.service:")) {
		t.Errorf("%v: %s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("unrecognized option")) {
		t.Errorf("%v: %s", err, out)
	}
}
