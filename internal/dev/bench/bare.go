package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	_ "github.com/lib/pq" // for what is written by hand
)

// The bare server is what a good programmer would write by hand for one
// answer, without any of what palmares is for. It is a process of its own.

// bare is what it serves.
type bare struct {
	Body, Gzipped []byte
	Header        http.Header // as ours has them, for the rows that compare whole answers
	DatabaseURL   string
}

func serveBare() error {
	var b bare
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		return err
	}
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, body []byte) {
		for name, values := range b.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}
	mux.HandleFunc("GET /body", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(b.Body)))
		_, _ = w.Write(b.Body)
	})
	mux.HandleFunc("GET /plain", func(w http.ResponseWriter, _ *http.Request) { write(w, b.Body) })
	mux.HandleFunc("GET /gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		write(w, b.Gzipped)
	})
	mux.HandleFunc("GET /304", func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range b.Header {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
	})
	mux.HandleFunc("POST /post", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		write(w, b.Body)
	})
	if b.DatabaseURL != "" {
		db, err := sql.Open("postgres", b.DatabaseURL+"&sslmode=disable&binary_parameters=yes")
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(16)
		db.SetMaxIdleConns(16)
		mux.HandleFunc("GET /list", func(w http.ResponseWriter, r *http.Request) {
			answer(w, func() (any, error) { return handList(r.Context(), db, r.URL.Query().Get("score_min")) })
		})
		mux.HandleFunc("GET /tools/{slug}", func(w http.ResponseWriter, r *http.Request) {
			answer(w, func() (any, error) {
				tools, err := handTools(r.Context(), db, toolSQL+"AND slug = $1", r.PathValue("slug"))
				if err != nil || len(tools) == 0 {
					return nil, err
				}
				return tools[0], nil
			})
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, mux)
}

func answer(w http.ResponseWriter, read func() (any, error)) {
	value, err := read()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}

type handPage struct {
	Data []handTool `json:"data"`
	Meta struct {
		Total, Page, Limit, Pages int
	} `json:"meta"`
}

func handList(ctx context.Context, db *sql.DB, scoreMin string) (page handPage, err error) {
	least, err := strconv.ParseFloat(scoreMin, 64)
	if err != nil {
		return page, err
	}
	const where = "AND untested = false AND score >= $1 "
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM tools WHERE retired_at IS NULL "+where, least).Scan(&page.Meta.Total); err != nil {
		return page, err
	}
	page.Meta.Page, page.Meta.Limit, page.Meta.Pages = 1, 50, (page.Meta.Total+49)/50
	page.Data, err = handTools(ctx, db, toolSQL+where+"ORDER BY untested, score DESC, slug LIMIT 50", least)
	return page, err
}

// queryer is a database, or ent's way to one.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func handTools(ctx context.Context, db queryer, query string, args ...any) ([]handTool, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tools []handTool
	for rows.Next() {
		var t handTool
		if err := rows.Scan(&t.Slug, &t.Name, &t.Domain, &t.Category, &t.Icp, &t.Pricing, &t.Price, &t.Score, &t.Verifiability,
			&t.Tagline, &t.CanonicalURL, &t.AvisURL, &t.AlternativesURL, &t.UpdatedAt); err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, rows.Err()
}
