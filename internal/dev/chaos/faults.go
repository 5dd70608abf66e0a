package main

import (
	"context"
	"errors"
	"time"
)

// fault is one thing that goes wrong, and how it is mended. What is exact
// without one may be off by what the README says.
type fault struct {
	name        string
	long, short time.Duration // between begin and end; it has no short form if that is 0
	begin, end  func(context.Context, *scene) error
	lostRedis   int  // how many requests Redis may forget
	noFailure   bool // not even an uncached read may fail
	days        int  // in which a limit was tried, if not one
}

// redone is what a Redis that lost its counts may grant again.
const redone = 20

// faults are all of them, in the order they happen in.
var faults = []fault{
	{name: "nothing", long: 5 * time.Second, begin: nothing, end: nothing, noFailure: true},
	{name: "kill -9 of the server that sends, and restart", long: 5 * time.Second, short: 3 * time.Second, begin: killSender, end: startKilled, noFailure: true},
	{name: "rolling restart", long: time.Millisecond, short: time.Millisecond, begin: nothing, end: restartAll, noFailure: true},
	{name: "PostgreSQL crashes, and restarts", long: 20 * time.Second, short: 3 * time.Second, begin: crashPostgres, end: restartPostgres},
	{name: "PostgreSQL crashes as news come out", long: 5 * time.Second, short: 2 * time.Second, begin: publishAndCrash, end: restartPostgres},
	{name: "PostgreSQL frozen", long: 20 * time.Second, short: 3 * time.Second, begin: freezePostgres, end: thawPostgres},
	{name: "Redis stopped, and restarted empty", long: 10 * time.Second, short: 2 * time.Second, begin: stopRedis, end: startRedis, lostRedis: redone, noFailure: true},
	{name: "Redis frozen", long: 10 * time.Second, short: 2 * time.Second, begin: freezeRedis, end: thawRedis, noFailure: true},
	{name: "network cut between a server and PostgreSQL", long: 20 * time.Second, short: 3 * time.Second, begin: cut, end: mend},
}

func nothing(context.Context, *scene) error { return nil }

// killSender publishes, and kills the server that begins to send the events.
// On a busy machine all may be sent before we look: then it publishes again.
func killSender(ctx context.Context, s *scene) error {
	for range 4 {
		before, _ := s.inbox.arrived()
		if err := s.publish(ctx); err != nil {
			return err
		}
		for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if now, peer := s.inbox.arrived(); now != before && s.killHolder(peer) {
				return nil
			}
		}
	}
	return errors.New("nobody sends")
}

// killHolder kills the server that has a connection, if one still does.
func (s *scene) killHolder(peer string) bool {
	for _, server := range s.servers {
		if holds(server.cmd.Process.Pid, peer) {
			s.killed = killing{server.address, time.Now()}
			server.kill()
			return true
		}
	}
	return false
}

func startKilled(ctx context.Context, s *scene) error {
	for _, server := range s.servers {
		select {
		case <-server.ended:
			return server.start(ctx)
		default:
		}
	}
	return errors.New("nobody was killed")
}

// restartAll ends and starts one server after the other.
func restartAll(ctx context.Context, s *scene) error {
	for _, server := range s.servers {
		if err := server.stop(); err != nil {
			return err
		}
		if err := server.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func crashPostgres(_ context.Context, s *scene) error {
	s.postgres.Crash()
	return nil
}

// publishAndCrash takes the database away while the servers are about to show
// what is new.
func publishAndCrash(ctx context.Context, s *scene) error {
	err := s.publish(ctx)
	s.postgres.Crash()
	return err
}

func restartPostgres(ctx context.Context, s *scene) error { return s.postgres.Restart(ctx) }

func freezePostgres(_ context.Context, s *scene) error { return s.postgres.Halt() }

func thawPostgres(_ context.Context, s *scene) error { return s.postgres.GoOn() }

func stopRedis(_ context.Context, s *scene) error {
	s.redis.Stop()
	return nil
}

func startRedis(_ context.Context, s *scene) error { return s.redis.Run() }

func freezeRedis(_ context.Context, s *scene) error {
	s.redis.Freeze()
	return nil
}

func thawRedis(_ context.Context, s *scene) error {
	s.redis.Thaw()
	return nil
}

func cut(_ context.Context, s *scene) error { return s.cable.cut() }

func mend(ctx context.Context, s *scene) error { return s.cable.mend(ctx) }
