package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"palmares/internal/dev/testkit"
)

// A single server keeps its catalog in a file, on a disk that fills up.

const smallDisk = 24 << 20

var diskFault = fault{name: "disk full, one server on SQLite", long: 10 * time.Second, short: 2 * time.Second, begin: fillDisk, end: clearDisk, noFailure: true}

func fullDisk(ctx context.Context, p place, w wants) ([]*outcome, error) {
	if !w.fault(diskFault.name) {
		return nil, nil
	}
	p.dir = filepath.Join(p.dir, "alone")
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		return nil, err
	}
	data, unmount, err := testkit.MountSmallDisk(smallDisk)
	if err != nil {
		return []*outcome{{fault: diskFault, note: "not run: only root can mount a small disk"}}, nil
	}
	defer unmount()
	s := &scene{place: p, shown: newSightings(), data: data, env: []string{"PALMARES_DATA_DIR=" + data}}
	defer s.stop()
	alone, err := newServer(p, "alone", s.env...)
	if err != nil {
		return nil, err
	}
	s.servers, s.base = []*server{alone}, "http://"+alone.address
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	o, err := s.suffer(ctx, diskFault, w.short)
	if err != nil {
		return nil, err
	}
	return []*outcome{o}, nil
}

func ballast(s *scene) string { return filepath.Join(s.data, "ballast") }

// fillDisk leaves no room, and sees that nothing can be published.
func fillDisk(ctx context.Context, s *scene) error {
	file, err := os.Create(ballast(s))
	if err != nil {
		return err
	}
	defer file.Close()
	block := make([]byte, 4<<10)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	if err := s.publish(ctx); err == nil {
		return fmt.Errorf("a catalog was published on a full disk of %d MB", smallDisk>>20)
	}
	return nil
}

func clearDisk(_ context.Context, s *scene) error { return os.Remove(ballast(s)) }
