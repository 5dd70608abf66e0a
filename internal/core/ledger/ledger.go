// Package ledger stores what package quota counts in the database.
package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/countbatch"
	"palmares/ent/usage"
	"palmares/internal/core/clock"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
)

const (
	// writeEvery limits what a crash loses to well under a second.
	writeEvery   = 400 * time.Millisecond
	writeTimeout = 30 * time.Second
	// mergeEvery is how many batches are written before those of a day are merged.
	mergeEvery = 1_000
	// maxCalls limits the memory while the database is unavailable. Further requests
	// are only counted by account.
	maxCalls = 128_000
	// maxRows is how many rows one statement writes; databases limit its parameters.
	maxRows = 1_000
	// detailDays is how long counts are stored by key and endpoint.
	detailDays = 35
)

// Ledger stores what a Counter counted for addresses, and what Add counted for accounts,
// so that it survives a restart. Accounts have rows, by key and endpoint; addresses are
// stored in batches. A batch that may or may not have been written is written again
// under the same name, and counts once, with the rows that belong to it.
type Ledger struct {
	store     *store.Store
	counter   *quota.Counter
	addresses bool // false if Redis stores them
	log       *slog.Logger

	mu    sync.Mutex
	calls map[Call]int

	pending  []*batch // not yet written
	failing  bool
	last     string // the batch that was written last
	unmerged int    // batches since the last merge
}

// Call identifies what requests of accounts are counted by.
type Call struct {
	Day           quota.Day
	Subject       quota.Subject
	Key, Endpoint string
}

type batch struct {
	name   string
	day    quota.Day
	counts map[quota.Subject]int // of addresses
	calls  []row                 // in a fixed order, because servers would deadlock otherwise
}

type row struct {
	Call
	n int
}

// New stores a counter's counts in a database.
func New(s *store.Store, c *quota.Counter, addresses bool, log *slog.Logger) *Ledger {
	return &Ledger{store: s, counter: c, addresses: addresses, log: log, calls: map[Call]int{}}
}

// Load restores the counts of today, and of the latest other days in the
// database: the clock may be wrong now and right in a moment. Nothing may be
// counted before.
func (l *Ledger) Load(ctx context.Context, today quota.Day) error {
	var days []string
	err := l.store.Write.CountBatch.Query().Where(countbatch.DayNEQ(today.String())).Unique(true).
		Order(countbatch.ByDay(entsql.OrderDesc())).Limit(quota.DaysInMemory-1).Select(countbatch.FieldDay).Scan(ctx, &days)
	if err != nil {
		return err
	}
	slices.Reverse(days)
	for _, text := range append(days, today.String()) { // today is then the most recently used day
		date, err := time.Parse(time.DateOnly, text)
		if err == nil {
			err = l.load(ctx, quota.DayOf(date))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) load(ctx context.Context, day quota.Day) error {
	var rows []struct {
		Subject  int64
		Requests int
	}
	err := l.store.Write.Usage.Query().Where(usage.Day(day.String())).GroupBy(usage.FieldSubject).
		Aggregate(ent.As(ent.Sum(usage.FieldRequests), usage.FieldRequests)).Scan(ctx, &rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		l.counter.Restore(quota.Subject(row.Subject), day, row.Requests)
	}
	if !l.addresses {
		return nil
	}
	total, err := l.merge(ctx, day)
	for subject, n := range total {
		l.counter.Restore(subject, day, n)
	}
	return err
}

// Add counts n requests of an account. It only changes memory.
func (l *Ledger) Add(call Call, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.calls[call]; !known && len(l.calls) >= maxCalls {
		call.Key, call.Endpoint = "", ""
	}
	l.calls[call] += n
}

// Run writes until ctx ends, and then writes the remaining counts.
func (l *Ledger) Run(ctx context.Context) {
	clock.Every(ctx, writeEvery, func() { l.Write(ctx) })
	l.Write(context.WithoutCancel(ctx))
}

// Write stores what was counted since the last call, after any batches that could
// not be written before.
func (l *Ledger) Write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := l.writePending(ctx)
	if err == nil {
		l.pending = l.collect()
		err = l.writePending(ctx)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return // the server stops, and Run writes the rest
	case err != nil && !l.failing:
		l.log.Warn("writing request counts failed, will retry", "cause", err)
	case err == nil && l.failing:
		l.log.Info("writing request counts works again")
	}
	l.failing = err != nil
}

// collect returns what was counted since the last call, in a batch for each day.
func (l *Ledger) collect() (all []*batch) {
	l.mu.Lock()
	calls := l.calls
	l.calls = make(map[Call]int, len(calls))
	l.mu.Unlock()
	on := func(day quota.Day) *batch {
		for _, b := range all {
			if b.day == day {
				return b
			}
		}
		all = append(all, &batch{name: rand.Text(), day: day})
		return all[len(all)-1]
	}
	if counts := l.counter.Changes(); l.addresses {
		for day, counts := range counts {
			on(day).counts = counts
		}
	}
	for call, n := range calls {
		if n != 0 {
			b := on(call.Day)
			b.calls = append(b.calls, row{call, n})
		}
	}
	for _, b := range all {
		slices.SortFunc(b.calls, func(a, b row) int {
			return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Endpoint, b.Endpoint))
		})
	}
	return all
}

func (l *Ledger) writePending(ctx context.Context) error {
	for len(l.pending) > 0 {
		b := l.pending[0]
		if err := l.write(ctx, b); err != nil {
			return err
		}
		l.last, l.pending = b.name, l.pending[1:]
		if l.unmerged++; l.addresses && l.unmerged >= mergeEvery {
			l.unmerged = 0
			if _, err := l.merge(ctx, b.day); err != nil {
				l.log.Warn("merging request counts failed", "cause", err)
			}
		}
	}
	return nil
}

func (l *Ledger) write(ctx context.Context, b *batch) error {
	return l.store.Update(ctx, func(tx *ent.Tx) error {
		written, err := tx.CountBatch.Query().Where(countbatch.ID(b.name)).Exist(ctx)
		if err != nil || written {
			return err
		}
		if err := tx.CountBatch.Create().SetID(b.name).SetDay(b.day.String()).SetCounts(encode(b.counts)).Exec(ctx); err != nil {
			return err
		}
		if !l.addresses {
			// An empty batch only proves that it was written, so one is enough.
			if _, err := tx.CountBatch.Delete().Where(countbatch.ID(l.last)).Exec(ctx); err != nil {
				return err
			}
		}
		for rows := range slices.Chunk(b.calls, maxRows) {
			if err := add(ctx, tx, rows); err != nil {
				return err
			}
		}
		return nil
	})
}

func add(ctx context.Context, tx *ent.Tx, rows []row) error {
	return tx.Usage.MapCreateBulk(rows, func(create *ent.UsageCreate, i int) {
		row := rows[i]
		create.SetSubject(int64(row.Subject)).SetDay(row.Day.String()).SetKey(row.Key).SetEndpoint(row.Endpoint).SetRequests(row.n)
	}).OnConflict(
		entsql.ConflictColumns(usage.FieldSubject, usage.FieldDay, usage.FieldKey, usage.FieldEndpoint),
		entsql.ResolveWith(func(u *entsql.UpdateSet) {
			u.Set(usage.FieldRequests, entsql.Expr(usage.Table+".requests + excluded.requests"))
		}),
	).Exec(ctx)
}

// merge replaces a day's batches with one, and returns its counts.
func (l *Ledger) merge(ctx context.Context, day quota.Day) (total map[quota.Subject]int, err error) {
	err = l.store.Update(ctx, func(tx *ent.Tx) error {
		total = map[quota.Subject]int{}
		rows, err := tx.CountBatch.Query().Where(countbatch.Day(day.String())).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := decode(row.Counts, total); err != nil {
				return err
			}
		}
		if len(rows) < 2 {
			return nil
		}
		deleted, err := tx.CountBatch.Delete().Where(countbatch.Day(day.String())).Exec(ctx)
		if err == nil && deleted != len(rows) {
			err = errors.New("another server wrote batches in the meantime")
		}
		if err != nil {
			return err
		}
		return tx.CountBatch.Create().SetID(rand.Text()).SetDay(day.String()).SetCounts(encode(total)).Exec(ctx)
	})
	return total, err
}

// encode writes the counts of addresses: eight bytes of subject and a varint each.
func encode(counts map[quota.Subject]int) []byte {
	data := make([]byte, 0, len(counts)*9)
	for subject, n := range counts {
		data = binary.BigEndian.AppendUint64(data, uint64(subject))
		data = binary.AppendVarint(data, int64(n))
	}
	return data
}

func decode(data []byte, into map[quota.Subject]int) error {
	for len(data) > 0 {
		n, size := binary.Varint(data[min(8, len(data)):])
		if size <= 0 {
			return errors.New("a batch of counts is malformed")
		}
		into[quota.Subject(binary.BigEndian.Uint64(data))] += int(n)
		data = data[8+size:]
	}
	return nil
}

// Tidy deletes the batches of all days but today and its neighbors: earlier days are
// over, and later ones are from a time when the clock was wrong. Usage that is old is
// merged by day, and that of deleted accounts is deleted at midnight. The caller makes
// sure that the clock can be trusted: see clock.Steady.
func Tidy(ctx context.Context, s *store.Store, today quota.Day) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		_, err := tx.CountBatch.Delete().
			Where(countbatch.Or(countbatch.DayLT((today - 1).String()), countbatch.DayGT((today + 1).String()))).Exec(ctx)
		if err != nil {
			return err
		}
		for _, statement := range []string{
			// The sum is assigned, so that servers that tidy at the same time do not add it twice.
			`INSERT INTO usages (subject, day, key, endpoint, requests)
				SELECT subject, day, '', '', SUM(requests) FROM usages
				WHERE (subject, day) IN (SELECT subject, day FROM usages WHERE day < $1 AND endpoint <> '') GROUP BY subject, day ORDER BY subject, day
				ON CONFLICT (subject, day, key, endpoint) DO UPDATE SET requests = excluded.requests`,
			`DELETE FROM usages WHERE day < $1 AND endpoint <> ''`,
		} {
			if _, err := tx.ExecContext(ctx, statement, (today - detailDays).String()); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM usages WHERE day > $1
			OR day < $2 AND subject NOT IN (SELECT COALESCE(subject, id + $3) FROM accounts)`,
			(today + 1).String(), today.String(), int64(quota.Account(0)))
		return err
	})
}
