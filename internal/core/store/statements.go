package store

import (
	"context"
	"database/sql"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	keptStatements = 200
	seenStatements = 2_000
	// afterUse is longer than any reading may take: by then nobody can be
	// about to run a statement that was put aside.
	afterUse = time.Minute
)

// statements keeps what readers ask again and again prepared. A text that
// comes for the first time is only run: preparing it would cost more.
type statements struct {
	db   *sql.DB
	kept *lru.Cache[string, *sql.Stmt]
	seen *lru.Cache[string, struct{}]
}

func newStatements(db *sql.DB) *statements {
	kept, err := lru.NewWithEvict(keptStatements, func(_ string, aside *sql.Stmt) {
		time.AfterFunc(afterUse, func() { _ = aside.Close() })
	})
	if err != nil {
		panic(err) // the size above is wrong
	}
	seen, err := lru.New[string, struct{}](seenStatements)
	if err != nil {
		panic(err)
	}
	return &statements{db: db, kept: kept, seen: seen}
}

// prepared is the statement of a text that came before, or nil.
func (s *statements) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if stmt, ok := s.kept.Get(text); ok {
		return stmt, nil
	}
	if again, _ := s.seen.ContainsOrAdd(text, struct{}{}); !again {
		return nil, nil
	}
	stmt, err := s.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if first, there, _ := s.kept.PeekOrAdd(text, stmt); there {
		_ = stmt.Close() // another reader was faster
		return first, nil
	}
	return stmt, nil
}

// query runs a text outside any transaction.
func (s *statements) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	stmt, err := s.prepared(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case stmt == nil:
		return s.db.QueryContext(ctx, text, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

// queryIn runs a text in a transaction. It prepares nothing, which would take
// a second connection while others may wait for their first.
func (s *statements) queryIn(ctx context.Context, tx *sql.Tx, text string, args []any) (*sql.Rows, error) {
	if stmt, ok := s.kept.Get(text); ok {
		return tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	}
	return tx.QueryContext(ctx, text, args...)
}
