package quota

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/keyusage"
	"palmares/internal/core/clock"
	"palmares/internal/core/store"
)

const (
	breakdownEvery   = 5 * time.Second
	breakdownTimeout = 4 * time.Second
	breakdownDays    = 35
	// maxCalls limits the memory while the database is unavailable. Further calls
	// are not counted.
	maxCalls = 128_000
	// maxRows is how many rows one statement writes; databases limit its
	// parameters.
	maxRows = 1_000
)

// Call identifies what a Breakdown counts together.
type Call struct {
	Day      Day
	Account  int
	Key      string
	Endpoint string
}

// Breakdown counts the requests of accounts by key and endpoint. The counts are
// only shown to the account: unlike those of the quota, the last seconds before a
// crash may be lost.
type Breakdown struct {
	store   *store.Store
	log     *slog.Logger
	failing bool
	mu      sync.Mutex
	counts  map[Call]int
}

// NewBreakdown returns a breakdown that Run stores in a database.
func NewBreakdown(s *store.Store, log *slog.Logger) *Breakdown {
	return &Breakdown{store: s, log: log, counts: map[Call]int{}}
}

// Add counts n calls. It only changes memory.
func (b *Breakdown) Add(call Call, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if count, known := b.counts[call]; known || len(b.counts) < maxCalls {
		b.counts[call] = count + n
	}
}

// Run writes until ctx ends, and then writes the remaining counts.
func (b *Breakdown) Run(ctx context.Context) {
	clock.Every(ctx, breakdownEvery, func() { b.Write(ctx) })
	b.Write(context.WithoutCancel(ctx))
}

// Write stores what was counted since the last call. What cannot be stored is
// counted again.
func (b *Breakdown) Write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, breakdownTimeout)
	defer cancel()
	var err error
	for rows := range slices.Chunk(b.collect(), maxRows) {
		if err == nil {
			err = b.write(ctx, rows)
		}
		if err != nil {
			for _, row := range rows {
				b.Add(row.Call, row.n)
			}
		}
	}
	if err != nil && !b.failing && !errors.Is(err, context.Canceled) { // canceled: the server stops, and Run writes the rest
		b.log.Warn("writing usage by endpoint failed, will retry", "cause", err)
	}
	b.failing = err != nil
}

type callCount struct {
	Call
	n int
}

// collect returns the counts and resets them. Servers write them in the same
// order, because they would deadlock otherwise.
func (b *Breakdown) collect() (rows []callCount) {
	b.mu.Lock()
	counts := b.counts
	b.counts = make(map[Call]int, len(counts))
	b.mu.Unlock()
	for call, n := range counts {
		if n != 0 {
			rows = append(rows, callCount{call, n})
		}
	}
	slices.SortFunc(rows, func(a, b callCount) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Day, b.Day), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return rows
}

func (b *Breakdown) write(ctx context.Context, rows []callCount) error {
	return b.store.Write.KeyUsage.MapCreateBulk(rows, func(create *ent.KeyUsageCreate, i int) {
		row := rows[i]
		create.SetAccountID(row.Account).SetDay(row.Day.String()).SetKey(row.Key).SetEndpoint(row.Endpoint).SetRequests(row.n)
	}).OnConflict(
		entsql.ConflictColumns(keyusage.FieldAccountID, keyusage.FieldDay, keyusage.FieldKey, keyusage.FieldEndpoint),
		entsql.ResolveWith(func(u *entsql.UpdateSet) {
			u.Set(keyusage.FieldRequests, entsql.Expr(keyusage.Table+".requests + excluded.requests"))
		}),
	).Exec(ctx)
}

// TidyBreakdown deletes counts that are old or that a wrong clock dated in the
// future, and those of deleted accounts, which a server may write after the
// deletion. The caller makes sure that the clock can be trusted: see clock.Steady.
func TidyBreakdown(ctx context.Context, s *store.Store, today Day) error {
	_, err := s.Write.KeyUsage.Delete().Where(keyusage.Or(
		keyusage.DayLT((today - breakdownDays).String()), keyusage.DayGT((today + 1).String()),
		func(rows *entsql.Selector) {
			rows.Where(entsql.NotIn(rows.C(keyusage.FieldAccountID), entsql.Select(account.FieldID).From(entsql.Table(account.Table))))
		},
	)).Exec(ctx)
	return err
}
