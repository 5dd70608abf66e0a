package quota

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/countbatch"
	"palmares/ent/usage"
	"palmares/internal/core/clock"
	"palmares/internal/core/store"
)

const (
	// writeEvery limits what a crash loses to well under a second.
	writeEvery   = 400 * time.Millisecond
	writeTimeout = 30 * time.Second
	// mergeEvery is how many batches are written before those of a day are merged.
	mergeEvery = 1_000
)

// Ledger stores what a Counter counted in the database, so that it survives a
// restart. Accounts have rows of their own; addresses are stored in batches. A
// batch that may or may not have been written is written again under the same
// name, and counts once.
type Ledger struct {
	store     *store.Store
	counter   *Counter
	addresses bool // false if Redis stores them
	former    AddFormerUsage
	log       *slog.Logger

	pending  []batch // not yet written
	failing  bool
	last     string // the batch that was written last
	unmerged int    // batches since the last merge
}

type batch struct {
	name   string
	day    Day
	counts map[Subject]int
}

// AddFormerUsage adds requests of a day (YYYY-MM-DD) to an account that was
// deleted since they were counted.
type AddFormerUsage func(ctx context.Context, tx *ent.Tx, accountID int, day string, requests int) error

// NewLedger stores a counter's counts in a database.
func NewLedger(s *store.Store, c *Counter, addresses bool, former AddFormerUsage, log *slog.Logger) *Ledger {
	return &Ledger{store: s, counter: c, addresses: addresses, former: former, log: log}
}

// Load restores the counts of today, and of the latest other days in the
// database: the clock may be wrong now and right in a moment. Nothing may be
// counted before.
func (l *Ledger) Load(ctx context.Context, today Day) error {
	var days []string
	err := l.store.Write.CountBatch.Query().Where(countbatch.DayNEQ(today.String())).Unique(true).
		Order(countbatch.ByDay(entsql.OrderDesc())).Limit(daysInMemory-1).Select(countbatch.FieldDay).Scan(ctx, &days)
	if err != nil {
		return err
	}
	slices.Reverse(days)
	for _, text := range append(days, today.String()) { // today is then the most recently used day
		date, err := time.Parse(time.DateOnly, text)
		if err == nil {
			err = l.load(ctx, DayOf(date))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) load(ctx context.Context, day Day) error {
	rows, err := l.store.Write.Usage.Query().Where(usage.Day(day.String())).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		l.counter.restore(key{day, Account(row.AccountID)}, row.Requests)
	}
	if !l.addresses {
		return nil
	}
	total, err := l.merge(ctx, day)
	for subject, n := range total {
		l.counter.restore(key{day, subject}, n)
	}
	return err
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
		for day, counts := range l.counter.changes() {
			l.pending = append(l.pending, batch{rand.Text(), day, counts})
		}
		err = l.writePending(ctx)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return // the server stops, and Run writes the rest
	case err != nil && !l.failing:
		l.log.Warn("writing quota counts failed, will retry", "cause", err)
	case err == nil && l.failing:
		l.log.Info("writing quota counts works again")
	}
	l.failing = err != nil
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
				l.log.Warn("merging quota counts failed", "cause", err)
			}
		}
	}
	return nil
}

func (l *Ledger) write(ctx context.Context, b batch) error {
	return l.store.Update(ctx, func(tx *ent.Tx) error {
		written, err := tx.CountBatch.Query().Where(countbatch.ID(b.name)).Exist(ctx)
		if err != nil || written {
			return err
		}
		if err := tx.CountBatch.Create().SetID(b.name).SetDay(b.day.String()).SetCounts(l.encode(b.counts)).Exec(ctx); err != nil {
			return err
		}
		if !l.addresses {
			// An empty batch only proves that it was written, so one is enough.
			if _, err := tx.CountBatch.Delete().Where(countbatch.ID(l.last)).Exec(ctx); err != nil {
				return err
			}
		}
		// In a fixed order, because servers would deadlock otherwise.
		for _, subject := range slices.Sorted(maps.Keys(b.counts)) {
			if id, ok := subject.account(); ok {
				if err := l.addUsage(ctx, tx, id, b.day.String(), b.counts[subject]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// addUsage adds to an account's day, even if it was deleted since: signing up
// again with the same email address does not reset the quota.
func (l *Ledger) addUsage(ctx context.Context, tx *ent.Tx, id int, day string, n int) error {
	exists, err := tx.Account.Query().Where(account.ID(id)).Exist(ctx)
	if err != nil {
		return err
	}
	if !exists {
		return l.former(ctx, tx, id, day, n)
	}
	return tx.Usage.Create().SetAccountID(id).SetDay(day).SetRequests(n).
		OnConflict(
			entsql.ConflictColumns(usage.FieldAccountID, usage.FieldDay),
			entsql.ResolveWith(func(u *entsql.UpdateSet) { u.Add(usage.FieldRequests, n) }),
		).Exec(ctx)
}

// merge replaces a day's batches with one, and returns its counts.
func (l *Ledger) merge(ctx context.Context, day Day) (total map[Subject]int, err error) {
	err = l.store.Update(ctx, func(tx *ent.Tx) error {
		total = map[Subject]int{}
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
		return tx.CountBatch.Create().SetID(rand.Text()).SetDay(day.String()).SetCounts(l.encode(total)).Exec(ctx)
	})
	return total, err
}

// Tidy deletes the batches of all days but today and its neighbors: earlier
// days are over, and later ones are from a time when the clock was wrong. The
// caller makes sure that the clock can be trusted: see clock.Steady.
func Tidy(ctx context.Context, s *store.Store, today Day) error {
	_, err := s.Write.CountBatch.Delete().
		Where(countbatch.Or(countbatch.DayLT((today - 1).String()), countbatch.DayGT((today + 1).String()))).Exec(ctx)
	return err
}

// encode writes the counts of addresses: eight bytes of subject and a varint
// each. Those of accounts have a table of their own.
func (l *Ledger) encode(counts map[Subject]int) []byte {
	data := make([]byte, 0, len(counts)*9)
	for subject, n := range counts {
		if _, ok := subject.account(); !ok && l.addresses {
			data = binary.BigEndian.AppendUint64(data, uint64(subject))
			data = binary.AppendVarint(data, int64(n))
		}
	}
	return data
}

func decode(data []byte, into map[Subject]int) error {
	for len(data) > 0 {
		n, size := binary.Varint(data[min(8, len(data)):])
		if size <= 0 {
			return errors.New("a batch of counts is malformed")
		}
		into[Subject(binary.BigEndian.Uint64(data))] += int(n)
		data = data[8+size:]
	}
	return nil
}
