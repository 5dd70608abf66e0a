package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	_ "github.com/lib/pq" // for the hand-written queries

	"palmares/internal/dev/load"
)

// contest compares a server of ours with another one.
type contest struct {
	name         string
	ours, theirs requests
	goal         float64 // ratio
}

// http measures a server against a bare one that writes the same bytes. Both
// take turns, so that a noisy machine affects them alike.
func (b *bench) http(ctx context.Context) error {
	table := load.NewTable("over HTTP, 16 connections", "database", "ours per second", "by hand", "ratio", "goal", "p50", "p99")
	var memory []string
	for _, kind := range kinds {
		progress("%s, HTTP against a bare server", kind)
		db, server, key, err := b.serveCatalog(ctx, kind, 5_000)
		if err != nil {
			return err
		}
		defer server.Kill()
		idle, _ := server.Memory()
		other, header, err := startBare(server, key, db.DatabaseURL)
		if err != nil {
			return err
		}
		defer other.Kill()
		auth := bearer(key)
		hit := getText("/api/v1/tools", auth)
		query := `{"query":"{tools(limit: 50) {items {` + toolFields + `} meta {total page limit pages}}}"}`
		for _, c := range []contest{
			{"hit", requests{Texts: []string{hit}}, requests{Texts: []string{getText("/plain", "")}}, 0.85},
			{"hit, against the body without our headers", requests{Texts: []string{hit}}, requests{Texts: []string{getText("/body", "")}}, 0},
			{"hit, gzip", requests{Texts: []string{getText("/api/v1/tools", auth+"Accept-Encoding: gzip\r\n")}}, requests{Texts: []string{getText("/gzip", "")}}, 0.85},
			{"304", requests{Texts: []string{getText("/api/v1/tools", auth+"If-None-Match: "+header.Get("Etag")+"\r\n")}, Status: 304},
				requests{Texts: []string{getText("/304", "")}, Status: 304}, 0.8},
			{"hit, GraphQL POST", requests{Texts: []string{postText("/graphql", query, auth)}}, requests{Texts: []string{postText("/post", query, "")}}, 0.6},
			{"hit, 1,000,000 addresses, against hit with a key", requests{Texts: []string{getText("/api/v1/tools", "")}, Addresses: true},
				requests{Texts: []string{hit}, Address: server.Address}, 0.8},
		} {
			if err := c.run(table, kind, server.Address, other.Address); err != nil {
				return err
			}
		}
		after, _ := server.Memory()
		memory = append(memory, fmt.Sprintf("%s: %s idle, %s after this load", kind, inMB(idle), inMB(after)))
		if kind == "SQLite" {
			continue
		}
		slugs, err := fetchSlugs(server.Address)
		if err != nil {
			return err
		}
		one := func(path, headers string) (r requests) {
			for _, slug := range slugs {
				r.Texts = append(r.Texts, getText(path+slug, headers))
			}
			return r
		}
		for _, c := range []contest{
			{"miss, list of 50", requests{Texts: []string{getText("/api/v1/tools?score_min=0.000"+number, auth)}}, requests{Texts: []string{getText("/list?score_min=0.000"+number, "")}}, 0.8},
			{"miss, one tool", one("/api/v1/tools/", auth), one("/tools/", ""), 0.7},
		} {
			// With a tiny cache, every tool is evicted before it is requested again.
			small, err := b.Serve(append(db.env, "PALMARES_CACHE_MB=1"), io.Discard)
			if err != nil {
				return err
			}
			err = c.run(table, kind, small.Address, other.Address)
			small.Kill()
			if err != nil {
				return err
			}
		}
	}
	if err := table.Print(os.Stdout); err != nil {
		return err
	}
	fmt.Println(strings.Join(memory, "\n") + "\n")
	return nil
}

// run lets both sides take turns and adds a row.
func (c contest) run(table *load.Table, kind, ours, theirs string) error {
	progress("  %s", c.name)
	c.ours.Address = ours
	if c.theirs.Address == "" {
		c.theirs.Address = theirs
	}
	var totals [2]results
	for turn := range 5 {
		for side, r := range []requests{c.ours, c.theirs} {
			r.Duration = 1500 * time.Millisecond
			got, err := r.sendAll()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if turn == 0 {
				continue // warm-up
			}
			total := &totals[side]
			total.Requests += got.Requests
			total.Took += got.Took
			total.P50, total.P99 = max(total.P50, got.P50), max(total.P99, got.P99)
		}
	}
	a, b := totals[0].perSecond(), totals[1].perSecond()
	table.Add(c.name, kind, fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), fmt.Sprintf("%.2f", c.goal),
		totals[0].P50.Round(10*time.Microsecond), totals[0].P99.Round(10*time.Microsecond))
	return nil
}

func fetchSlugs(address string) (slugs []string, err error) {
	for page := range 20 {
		data, err := fetch(fmt.Sprintf("http://%s/api/v1/pricing?limit=200&page=%d", address, page+1))
		if err != nil {
			return nil, err
		}
		var list struct{ Data []struct{ Slug string } }
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		for _, tool := range list.Data {
			slugs = append(slugs, tool.Slug)
		}
	}
	return slugs, nil
}

// bare is a server that a good programmer would write by hand for one response,
// without everything else that palmares does. It is a process of its own.
type bare struct {
	Body, Gzipped []byte
	Header        http.Header // of our response
	DatabaseURL   string
}

// startBare starts a bare server with the list of tools of ours, whose headers
// it returns.
func startBare(ours *load.Process, key, databaseURL string) (*load.Process, http.Header, error) {
	response, body, err := load.Do(context.Background(), load.Client, "http://"+ours.Address+"/api/v1/tools", "", "Authorization", "Bearer "+key)
	if err != nil {
		return nil, nil, err
	}
	b := bare{Body: body, Header: response.Header, DatabaseURL: databaseURL}
	for _, name := range []string{"Date", "Content-Length", "Connection"} { // net/http adds its own
		b.Header.Del(name)
	}
	var gzipped bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	_, _ = w.Write(b.Body)
	_ = w.Close()
	b.Gzipped = gzipped.Bytes()
	input, err := json.Marshal(b)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(os.Args[0], "serve-bare")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	process, err := load.Start(cmd, regexp.MustCompile(`^(\S+)$`))
	return process, b.Header, err
}

func serveBare() error {
	var b bare
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		return err
	}
	write := func(w http.ResponseWriter, header http.Header, status int, body []byte) {
		for name, values := range header {
			w.Header()[name] = values
		}
		if status == http.StatusOK {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
	plain := http.Header{"Content-Type": {"application/json"}}
	gzipped, notModified := b.Header.Clone(), b.Header.Clone()
	gzipped.Set("Content-Encoding", "gzip")
	notModified.Del("Content-Type")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /body", func(w http.ResponseWriter, _ *http.Request) { write(w, plain, 200, b.Body) })
	mux.HandleFunc("GET /plain", func(w http.ResponseWriter, _ *http.Request) { write(w, b.Header, 200, b.Body) })
	mux.HandleFunc("GET /gzip", func(w http.ResponseWriter, _ *http.Request) { write(w, gzipped, 200, b.Gzipped) })
	mux.HandleFunc("GET /304", func(w http.ResponseWriter, _ *http.Request) { write(w, notModified, 304, nil) })
	mux.HandleFunc("POST /post", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		write(w, b.Header, 200, b.Body)
	})
	if b.DatabaseURL != "" {
		db, err := sql.Open("postgres", b.DatabaseURL+"&sslmode=disable&binary_parameters=yes")
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		encode := func(w http.ResponseWriter, value any, err error) {
			data, encodeErr := json.Marshal(value)
			if err != nil || encodeErr != nil {
				write(w, plain, http.StatusInternalServerError, nil)
				return
			}
			write(w, plain, 200, data)
		}
		mux.HandleFunc("GET /list", func(w http.ResponseWriter, r *http.Request) {
			list, err := readList(r.Context(), db, r.URL.Query().Get("score_min"))
			encode(w, list, err)
		})
		mux.HandleFunc("GET /tools/{slug}", func(w http.ResponseWriter, r *http.Request) {
			tools, err := readTools(r.Context(), db, toolSQL+"AND slug = $1", r.PathValue("slug"))
			if err == nil && len(tools) == 0 {
				err = sql.ErrNoRows
			}
			if err != nil {
				tools = []toolRow{{}}
			}
			encode(w, tools[0], err)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, mux)
}

type toolList struct {
	Data []toolRow `json:"data"`
	Meta struct {
		Total, Page, Limit, Pages int
	} `json:"meta"`
}

func readList(ctx context.Context, db *sql.DB, scoreMin string) (list toolList, err error) {
	least, err := strconv.ParseFloat(scoreMin, 64)
	if err != nil {
		return list, err
	}
	const where = "AND untested = false AND score >= $1 "
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM tools WHERE retired_at IS NULL "+where, least).Scan(&list.Meta.Total); err != nil {
		return list, err
	}
	list.Meta.Page, list.Meta.Limit, list.Meta.Pages = 1, 50, (list.Meta.Total+49)/50
	list.Data, err = readTools(ctx, db, toolSQL+where+"ORDER BY untested, score DESC, slug LIMIT 50", least)
	return list, err
}
