package deploy_test

import (
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

	"go.yaml.in/yaml/v3"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/server"
	"palmares/internal/web/prose"
)

// deployFile reads a file of the deploy folder.
func deployFile(t *testing.T, name string) string {
	t.Helper()
	data := check.Try(os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(name)))).OK(t)
	return string(data)
}

// documents returns the documents of a YAML file.
func documents(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(deployFile(t, name))); ; {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		check.OK(t, err, name)
		all = append(all, document)
	}
}

// at returns the value at a path of keys and indexes, or nil if there is none.
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

// knownSettings returns the environment variables of all settings.
func knownSettings(t *testing.T) (names []string) {
	t.Helper()
	help := blackbox.MustRun(t, blackbox.Command(t, store.Config{}, "serve", "--help")).Out
	for _, found := range regexp.MustCompile(`\(\$([A-Z_]+)\)`).FindAllStringSubmatch(help, -1) {
		names = append(names, found[1])
	}
	check.MustTrue(t, len(names) >= 20 && slices.Contains(names, "DATABASE_URL"), "got %d settings, want at least 20: %v", len(names), names)
	return names
}

// variablesOf returns the names that an env file sets, including commented ones.
func variablesOf(text string) (names []string) {
	for _, found := range regexp.MustCompile(`(?m)^#?([A-Z][A-Z_]+)=`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// The files in deploy set only settings that exist.
func TestDeployUsesKnownSettings(t *testing.T) {
	t.Parallel()
	known := knownSettings(t)
	given := map[string][]string{
		"compose.yml":                    keysOf(at(documents(t, "compose.yml")[0], "x-environment")),
		"kubernetes/config.yaml":         keysOf(at(documents(t, "kubernetes/config.yaml")[0], "data")),
		"kubernetes/secret.example.yaml": keysOf(at(documents(t, "kubernetes/secret.example.yaml")[0], "stringData")),
		"palmares.env.example":           variablesOf(deployFile(t, "palmares.env.example")),
	}
	for file, names := range given {
		check.True(t, len(names) >= 4, "%s: got %v, want at least 4 settings", file, names)
		for _, name := range names {
			check.True(t, slices.Contains(known, name), "%s: got unknown setting %s, want only known ones", file, name)
		}
	}
	for file, text := range map[string]any{
		"facts.example.yml":      deployFile(t, "facts.example.yml"),
		"kubernetes/config.yaml": at(documents(t, "kubernetes/config.yaml")[1], "data", "facts.yml"),
	} {
		folder := t.TempDir()
		check.OK(t, os.WriteFile(filepath.Join(folder, "facts.yml"), []byte(text.(string)), 0o600))
		if facts, err := prose.ReadFacts(folder); err != nil || len(facts.Missing()) > 0 {
			t.Errorf("%s: got %v without %v, want all facts", file, err, facts.Missing())
		}
	}
	// In other files, settings are recognized by their prefix.
	ours := regexp.MustCompile(`PALMARES_[A-Z_]+`)
	err := filepath.WalkDir(filepath.Join("..", "..", "deploy"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range ours.FindAllString(string(text), -1) {
			check.True(t, slices.Contains(known, strings.TrimSuffix(name, "_")) || strings.HasSuffix(name, "_"), "%s: got unknown setting %s, want only known ones", path, name)
		}
		return err
	})
	check.Equal(t, err, nil)
}

func parseDuration(t *testing.T, what string, value any) time.Duration {
	t.Helper()
	text, _ := value.(string)
	d := check.Try(time.ParseDuration(text)).OK(t, what)
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
			check.True(t, slices.Contains(services, other), "%s: got a dependency on %s, want one of %v", name, other, services)
		}
		check.True(t, at(service, "healthcheck") != nil, "%s: got no healthcheck, want one", name)
		if strings.HasPrefix(name, "palmares-") {
			replicas++
			grace := parseDuration(t, name, at(service, "stop_grace_period"))
			check.True(t, grace > server.MaxShutdown, "%s: got stop_grace_period %s, want more than %s", name, grace, server.MaxShutdown)
			got := at(service, "healthcheck", "test", 2)
			check.True(t, got == "health", "%s: got healthcheck %v, want health", name, got)
			check.Contains(t, deployFile(t, "nginx.conf"), "server "+name+":8080 ", "%s: upstream in nginx.conf", name)
		}
		volumes, _ := at(service, "volumes").([]any)
		for _, volume := range volumes {
			source, _, _ := strings.Cut(volume.(string), ":")
			check.True(t, strings.HasPrefix(source, "./") || slices.Contains(keysOf(at(file, "volumes")), source), "%s: got unknown volume %s, want a declared one", name, source)
		}
	}
	check.Equal(t, replicas, 3, "servers")
	proxy, trusted := at(file, "services", "nginx", "networks", "inside", "ipv4_address"), at(file, "x-environment", "TRUSTED_PROXIES")
	check.True(t, proxy != nil && proxy == trusted, "got TRUSTED_PROXIES %v, want the address of nginx, %v", trusted, proxy)

	// The example lists all variables of the file, and otherwise only settings, without
	// values for secrets.
	example := variablesOf(deployFile(t, ".env.example"))
	var used []string
	for _, found := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(deployFile(t, "compose.yml"), -1) {
		if used = append(used, found[1]); !slices.Contains(example, found[1]) {
			t.Errorf("got %v in .env.example, want %s too", example, found[1])
		}
	}
	for _, name := range example {
		check.True(t, slices.Contains(used, name) || slices.Contains(knownSettings(t), name), "got %s in .env.example, want variables of compose.yml and settings", name)
	}
	check.Equal(t, regexp.MustCompile(`(?m)^\w*(PASSWORD|SECRET|KEY)\w*=.+`).FindString(deployFile(t, ".env.example")), "", "in .env.example")
}

func TestKubernetesFiles(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	deployment := documents(t, "kubernetes/deployment.yaml")[0]
	pod := at(deployment, "spec", "template", "spec")
	container := at(pod, "containers", 0)
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		path, _ := at(container, probe, "httpGet", "path").(string)
		wait.Until(t, probe+" succeeds", func() bool { code, _ := s.Get(t, path); return code == 200 })
	}
	path := at(container, "livenessProbe", "httpGet", "path")
	check.True(t, path == "/healthz", "got liveness probe %v, want /healthz, because a database outage must not restart pods", path)
	period, _ := at(container, "readinessProbe", "periodSeconds").(int)
	times, _ := at(container, "readinessProbe", "failureThreshold").(int)
	check.True(t, period*times >= 60, "got pods out of service %d s after a database outage starts, want at least 60, because they can still serve from their caches", period*times)
	port := at(container, "ports", 0)
	check.True(t, at(port, "name") == "http" && at(port, "containerPort") == 8080, "got port %v, want http 8080", port)
	delay := parseDuration(t, "PALMARES_DRAIN_DELAY", at(documents(t, "kubernetes/config.yaml")[0], "data", "PALMARES_DRAIN_DELAY"))
	grace, _ := at(pod, "terminationGracePeriodSeconds").(int)
	check.True(t, time.Duration(grace)*time.Second > delay+server.MaxShutdown, "got terminationGracePeriodSeconds %d, want more than %s", grace, delay+server.MaxShutdown)
	if at(pod, "securityContext", "runAsNonRoot") != true || at(container, "securityContext", "readOnlyRootFilesystem") != true {
		t.Error("got pods that run as root or can write to their file system, want neither")
	}
	resources, _ := at(documents(t, "kubernetes/kustomization.yaml")[0], "resources").([]any)
	for _, name := range resources {
		for _, document := range documents(t, "kubernetes/"+name.(string)) {
			if name, _ := at(document, "metadata", "name").(string); document["kind"] == nil || !strings.HasPrefix(name, "palmares") {
				t.Errorf("%v: got %v, want a kind and a name that starts with palmares", name, document)
			}
		}
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		testkit.SkipUnsupported(t, "kubectl is not installed")
	}
	if out, err := exec.Command(kubectl, "kustomize", filepath.Join("..", "..", "deploy", "kubernetes")).CombinedOutput(); err != nil {
		t.Errorf("kubectl kustomize: got %v: %s, want success", err, out)
	}
}

// The workflow is valid YAML, names the versions of its actions, and runs targets of the Makefile.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	makefile := check.Try(os.ReadFile(filepath.Join("..", "..", "Makefile"))).OK(t)
	workflow := documents(t, "../.github/workflows/palmares.yml")[0]
	check.Slices(t, keysOf(at(workflow, "on")), []string{"pull_request", "push", "schedule"}, "events")
	targets := map[string]string{}
	for _, job := range keysOf(at(workflow, "jobs")) {
		steps, _ := at(workflow, "jobs", job, "steps").([]any)
		for i, step := range steps {
			command, _ := at(step, "run").(string)
			action, _ := at(step, "uses").(string)
			switch target, isMake := strings.CutPrefix(command, "make "); {
			case isMake && !strings.Contains(string(makefile), "\n"+target+":") && !strings.Contains(string(makefile), "\n"+target+" "):
				t.Errorf("%s: got make %s, want a target of the Makefile", job, target)
			case isMake:
				targets[target] = job
			case command == "" && !regexp.MustCompile(`^actions/[a-z-]+@v\d+$`).MatchString(action), command != "" && !strings.HasPrefix(command, "gh release create "):
				t.Errorf("%s: got step %d %v, want an action of a version, or make", job, i, step)
			}
		}
		check.True(t, at(workflow, "jobs", job, "timeout-minutes") != nil && len(steps) != 0, "%s: got %d steps or no timeout, want both", job, len(steps))
	}
	for target, job := range map[string]string{"test": "test", "lint": "test", "audit": "audit", "release": "release"} {
		check.Equal(t, targets[target], job, "make %s: job", target)
	}
}

func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	unit := deployFile(t, "palmares.service")
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(.+)$`).FindStringSubmatch(unit)
	check.True(t, stop != nil && parseDuration(t, "TimeoutStopSec", stop[1]) > server.MaxShutdown, "got TimeoutStopSec %v, want more than %s", stop, server.MaxShutdown)
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		testkit.SkipUnsupported(t, "systemd-analyze is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"palmares.service", "editorial/palmares-editorial.service", "editorial/palmares-editorial.timer"} {
		file := filepath.Join(dir, filepath.Base(name))
		installed := regexp.MustCompile(`/usr/local/bin/[a-z-]+`).ReplaceAllString(deployFile(t, name), os.Args[0])
		check.OK(t, os.WriteFile(file, []byte(installed), 0o644))
		verify := exec.Command(analyze, "verify", "--man=no", file)
		verify.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":") // the timer starts the service
		if out, err := verify.CombinedOutput(); err != nil || bytes.Contains(out, []byte(filepath.Base(name)+":")) {
			t.Errorf("systemd-analyze verify %s: got %v: %s, want no findings", name, err, out)
		}
		if strings.HasSuffix(name, ".timer") {
			continue
		}
		out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput()
		check.True(t, err == nil || bytes.Contains(out, []byte("unrecognized option")), "systemd-analyze security %s: got %v: %s, want an exposure of at most 2.0", name, err, out)
	}
}
