package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"palmares/internal/dev/testkit"
)

// scene is everything that takes part: one server with its own database, or
// three with what they share.
type scene struct {
	place
	servers []*server
	base    string   // where readers ask
	env     []string // for commands on the database
	key     string   // of a Pro account, whose requests have no bound
	inbox   *inbox
	shown   *sightings

	postgres *testkit.Cluster     // nil where the database is embedded
	redis    *testkit.RedisServer // nil where a server counts alone
	cable    *cable               // between the last server and PostgreSQL
	edition  int                  // the last that was published
	told     string               // the last event that was seen in the journal
	data     string               // where an embedded database is
	killed   killing              // the last
	stops    []func()
}

const owner = "pro@example.com"

// newTogether starts three servers behind nginx.
func newTogether(ctx context.Context, p place) (_ *scene, err error) {
	s := &scene{place: p, shown: newSightings()}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	bin, err := testkit.PostgreSQL.Ensure()
	if err != nil {
		return nil, err
	}
	// Nothing is lost when a process dies; only the disk's own promises are not
	// waited for.
	if s.postgres, err = testkit.StartCluster(ctx, bin, "fsync=off"); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.postgres.Stop)
	if s.redis, err = testkit.NewRedis(); err != nil {
		return nil, err
	}
	if err := s.redis.Run(); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.redis.Stop)
	host, err := hostOf(s.postgres.URL)
	if err != nil {
		return nil, err
	}
	if s.cable, err = newCable(host); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.cable.proxy.Stop)
	far, err := s.cable.through(s.postgres.URL)
	if err != nil {
		return nil, err
	}
	s.env = []string{"DATABASE_URL=" + s.postgres.URL, "REDIS_URL=" + s.redis.URL}
	for i, database := range []string{s.postgres.URL, s.postgres.URL, far} {
		server, err := newServer(p, fmt.Sprintf("server-%d", i+1), "DATABASE_URL="+database, "REDIS_URL="+s.redis.URL)
		if err != nil {
			return nil, err
		}
		s.servers = append(s.servers, server)
	}
	address, stop, err := startNginx(p.dir, s.servers)
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, stop)
	s.base = "http://" + address
	return s, s.open(ctx)
}

// open fills the database, and starts the servers and the receiver.
func (s *scene) open(ctx context.Context) (err error) {
	if err := s.publish(ctx); err != nil {
		return err
	}
	if _, err := s.does(ctx, s.env, "accounts", "create", owner, "--plan", "pro"); err != nil {
		return err
	}
	if s.key, err = s.does(ctx, s.env, "keys", "create", owner, "--name", "chaos"); err != nil {
		return err
	}
	if s.inbox, err = newInbox(); err != nil {
		return err
	}
	s.stops = append(s.stops, s.inbox.close)
	if _, err := s.does(ctx, s.env, "webhooks", "add", owner, "http://"+s.inbox.address); err != nil {
		return err
	}
	for _, server := range s.servers {
		if err := server.start(ctx); err != nil {
			return err
		}
		s.stops = append(s.stops, func() { _ = server.stop() })
	}
	// What was published before anybody listened is not sent.
	_, err = s.newEvents(ctx)
	return err
}

func (s *scene) stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// publish imports the next edition.
func (s *scene) publish(ctx context.Context) error {
	path, err := writeEdition(s.dir, s.edition+1)
	if err != nil {
		return err
	}
	if _, err := s.does(ctx, s.env, "import", path); err != nil {
		return err
	}
	s.edition++
	return nil
}

// publishAtLast imports the next edition as an operator does, who tries again
// until the database is there.
func (s *scene) publishAtLast(ctx context.Context) (refused int, err error) {
	for {
		err := s.publish(ctx)
		if err == nil || ctx.Err() != nil {
			return refused, err
		}
		refused++
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// served tells whether every server shows the last edition.
func (s *scene) served(ctx context.Context) bool {
	for _, server := range s.servers {
		if server.edition(ctx) != s.edition {
			return false
		}
	}
	return true
}

// newEvents are the ids of what has come into the journal since the last time.
func (s *scene) newEvents(ctx context.Context) (ids []string, err error) {
	for {
		variables := map[string]any{"after": nil}
		if s.told != "" {
			variables["after"] = s.told
		}
		question, err := json.Marshal(map[string]any{
			"query":     `query($after: String) {changes(first: 200, after: $after) {nodes {id}}}`,
			"variables": variables,
		})
		if err != nil {
			return nil, err
		}
		code, body, err := answer(ctx, http.MethodPost, "http://"+s.servers[0].address+"/graphql", question)
		if err != nil {
			return nil, err
		}
		var found struct {
			Data struct {
				Changes struct{ Nodes []struct{ ID string } }
			}
		}
		if err := json.Unmarshal(body, &found); err != nil || code != http.StatusOK {
			return nil, fmt.Errorf("the journal cannot be read: %d %.200s", code, body)
		}
		nodes := found.Data.Changes.Nodes
		for _, node := range nodes {
			ids = append(ids, node.ID)
			s.told = node.ID
		}
		if len(nodes) < 200 {
			return ids, nil
		}
	}
}

// usage is how many requests of the key are written down.
func (s *scene) usage(ctx context.Context) (int, error) {
	shown, err := s.does(ctx, s.env, "accounts", "show", owner)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(shown) {
		var n int
		if _, err := fmt.Sscanf(line, "today %d requests", &n); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("the account's usage is not shown")
}
