package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"palmares/internal/dev/testkit"
)

// place is where everything happens.
type place struct {
	palmares  string // the program
	dir, logs string
}

// command prepares palmares with settings, and none from outside.
func (p place) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.palmares, args...)
	inherited := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "PALMARES_") || strings.HasPrefix(variable, "DATABASE_") || strings.HasPrefix(variable, "REDIS_") ||
			strings.HasPrefix(variable, "PUBLIC_URL=") || strings.HasPrefix(variable, "SERVICE_") || strings.HasPrefix(variable, "TRUSTED_PROXIES=")
	})
	cmd.Env = append(inherited, env...)
	cmd.Dir = p.dir
	return cmd
}

// does lets a command come to its end and returns what it printed.
func (p place) does(ctx context.Context, env []string, args ...string) (string, error) {
	var out, said strings.Builder
	cmd := p.command(ctx, env, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("palmares %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// server is a palmares process, which may end and come again at its address.
type server struct {
	place
	name, address string
	env           []string
	cmd           *exec.Cmd
	ended         chan struct{}
}

func newServer(p place, name string, env ...string) (*server, error) {
	address, err := testkit.FreeAddress()
	if err != nil {
		return nil, err
	}
	return &server{place: p, name: name, address: address, env: append(env, "PALMARES_LISTEN="+address, "TRUSTED_PROXIES=127.0.0.1")}, nil
}

// start begins a process and waits until it is ready.
func (s *server) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.logs, s.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command(context.Background(), s.env, "serve")
	s.cmd.Stderr = log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C at the terminal is for us alone
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	cmd := s.cmd
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s.edition(ctx) >= -1 {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s has ended: see its log", s.name)
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
	}
	return fmt.Errorf("%s is not ready", s.name)
}

// kill ends the process as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// stop asks the process to end, and waits for it.
func (s *server) stop() error {
	if s.cmd == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		return nil
	case <-time.After(45 * time.Second):
		s.kill()
		return errors.New(s.name + " did not end")
	}
}

// edition is the one that the server says it serves; -1 for none yet, and -2
// where it is not ready.
func (s *server) edition(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var status struct {
		UpdatedAt string `json:"updated_at"`
	}
	code, body, err := fetch(ctx, "http://"+s.address+"/readyz")
	if err != nil || code != http.StatusOK || json.Unmarshal(body, &status) != nil {
		return -2
	}
	if status.UpdatedAt == "" {
		return -1
	}
	return editionOn(status.UpdatedAt)
}
