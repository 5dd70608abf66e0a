package quota

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/countbatch"
	"palmares/ent/usage"
	"palmares/internal/core/store"
)

const (
	// writeEvery keeps what a crash forgets to well under a second.
	writeEvery = 400 * time.Millisecond
	// mergeEvery is after how many batches a day's are merged into one.
	mergeEvery = 1_000
	writeTime  = 30 * time.Second
	// maxBehind bounds what is kept for a database that is away.
	maxBehind = 1_000
)

// Ledger writes down what a Counter counted, so that a restart knows it. A
// batch has a name: one that may or may not have been written is written again
// under the same name, and counts once.
type Ledger struct {
	store   *store.Store
	counter *Counter
	log     *slog.Logger
	// addresses are written down unless another store keeps them.
	addresses bool
	former    AddFormerUsage

	server string // makes the names of its batches its own
	number int
	merged int
	behind []batch
	silent bool   // the database is known to be away
	last   string // the batch that was surely written
}

type batch struct {
	name   string
	day    Day
	counts map[Subject]int
}

// AddFormerUsage adds requests of a day (YYYY-MM-DD) to an account that was
// deleted since they were counted.
type AddFormerUsage func(ctx context.Context, tx *ent.Tx, accountID int, day string, requests int) error

// NewLedger stores a counter's counts in a database. Requests of deleted
// accounts go to former.
func NewLedger(s *store.Store, c *Counter, addresses bool, former AddFormerUsage, log *slog.Logger) *Ledger {
	return &Ledger{store: s, counter: c, log: log, addresses: addresses, former: former, server: rand.Text()}
}

// Load restores the counts of today, and of the latest other days in the
// database: the clock may be wrong now and right in a moment. Nothing may be
// counted before.
func (l *Ledger) Load(ctx context.Context, today Day) error {
	days, err := l.days(ctx, today)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := l.load(ctx, day); err != nil {
			return err
		}
	}
	return nil
}

// days returns the days to restore: today last, so that it is the most
// recently used one.
func (l *Ledger) days(ctx context.Context, today Day) ([]Day, error) {
	var stored []string
	err := l.store.Write.CountBatch.Query().Where(countbatch.DayNEQ(today.String())).Unique(true).
		Order(countbatch.ByDay(entsql.OrderDesc())).Limit(daysInMemory-1).Select(countbatch.FieldDay).Scan(ctx, &stored)
	if err != nil {
		return nil, err
	}
	days := []Day{today}
	for _, text := range stored {
		date, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, err
		}
		days = append(days, DayOf(date))
	}
	slices.Reverse(days)
	return days, nil
}

func (l *Ledger) load(ctx context.Context, day Day) error {
	rows, err := l.store.Write.Usage.Query().Where(usage.Day(day.String())).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		l.counter.restore(Account(row.AccountID), day, row.Requests)
	}
	if !l.addresses {
		return nil
	}
	total, err := l.merge(ctx, day)
	for subject, n := range total {
		l.counter.restore(subject, day, n)
	}
	return err
}

// Run writes until ctx ends, and then what is left.
func (l *Ledger) Run(ctx context.Context) {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			l.Write(context.WithoutCancel(ctx))
			return
		case <-ticker.C:
			l.Write(ctx)
		}
	}
}

// Write writes down what was counted since the last time.
func (l *Ledger) Write(ctx context.Context) {
	for day, counts := range l.counter.changes() {
		l.number++
		l.behind = append(l.behind, batch{fmt.Sprintf("%s-%d", l.server, l.number), day, counts})
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	for len(l.behind) > 0 {
		if err := l.write(ctx, l.behind[0]); err != nil {
			l.wait(err)
			return
		}
		if l.silent {
			l.log.Info("counts are written again")
		}
		l.silent = false
		if l.addresses && l.number-l.merged >= mergeEvery {
			if _, err := l.merge(ctx, l.behind[0].day); err != nil {
				l.log.Warn("the day's counts were not merged", "cause", err)
			}
			l.merged = l.number
		}
		l.last = l.behind[0].name
		l.behind = l.behind[1:]
	}
}

// wait keeps what could not be written, together if it becomes much.
func (l *Ledger) wait(err error) {
	if !l.silent && !errors.Is(err, context.Canceled) {
		l.log.Warn("counts cannot be written: they wait", "cause", err)
		l.silent = true
	}
	for len(l.behind) > maxBehind {
		// The first may have been written, so it stays as it is.
		last, before := l.behind[len(l.behind)-1], &l.behind[len(l.behind)-2]
		if last.day != before.day {
			return
		}
		for subject, n := range last.counts {
			before.counts[subject] += n
		}
		l.behind = l.behind[:len(l.behind)-1]
	}
}

func (l *Ledger) write(ctx context.Context, b batch) error {
	return l.store.Update(ctx, func(tx *ent.Tx) error {
		there, err := tx.CountBatch.Query().Where(countbatch.ID(b.name)).Exist(ctx)
		if err != nil || there {
			return err
		}
		if err := tx.CountBatch.Create().SetID(b.name).SetDay(b.day.String()).SetCounts(l.encode(b.counts)).Exec(ctx); err != nil {
			return err
		}
		if !l.addresses {
			// The batch is a mark that its counts are in: the next one ends it.
			if _, err := tx.CountBatch.Delete().Where(countbatch.ID(l.last)).Exec(ctx); err != nil {
				return err
			}
		}
		// In one order, or servers would wait for each other crosswise.
		for _, subject := range slices.Sorted(maps.Keys(b.counts)) {
			if id, is := subject.account(); is {
				if err := l.addUsage(ctx, tx, id, b.day, b.counts[subject]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// addUsage adds to an account's day, also if it was deleted since: signing up
// again with its address does not reset the quota.
func (l *Ledger) addUsage(ctx context.Context, tx *ent.Tx, id int, day Day, n int) error {
	there, err := tx.Account.Query().Where(account.ID(id)).Exist(ctx)
	if err != nil {
		return err
	}
	if !there {
		return l.former(ctx, tx, id, day.String(), n)
	}
	return tx.Usage.Create().SetAccountID(id).SetDay(day.String()).SetRequests(n).
		OnConflictColumns(usage.FieldAccountID, usage.FieldDay).
		Update(func(u *ent.UsageUpsert) { u.AddRequests(n) }).Exec(ctx)
}

// merge sums up a day's batches into one, and returns the sum.
func (l *Ledger) merge(ctx context.Context, day Day) (map[Subject]int, error) {
	var total map[Subject]int
	err := l.store.Update(ctx, func(tx *ent.Tx) error {
		total = map[Subject]int{}
		rows, err := tx.CountBatch.Query().Where(countbatch.Day(day.String())).All(ctx)
		if err != nil {
			return err
		}
		var names []string
		for _, row := range rows {
			names = append(names, row.ID)
			if err := decode(row.Counts, total); err != nil {
				return err
			}
		}
		if len(rows) < 2 {
			return nil
		}
		removed := 0
		for len(names) > 0 {
			some := names[:min(len(names), 500)]
			n, err := tx.CountBatch.Delete().Where(countbatch.IDIn(some...)).Exec(ctx)
			if err != nil {
				return err
			}
			removed, names = removed+n, names[len(some):]
		}
		if removed != len(rows) {
			return errors.New("another server merges them, too")
		}
		l.number++
		return tx.CountBatch.Create().SetID(fmt.Sprintf("%s-%d", l.server, l.number)).SetDay(day.String()).SetCounts(l.encode(total)).Exec(ctx)
	})
	return total, err
}

// Tidy deletes the batches of all days but today and its neighbours: earlier
// days are over, and later ones are from a time when the clock was wrong. The
// caller makes sure that the clock can be trusted: see clock.Steady.
func Tidy(ctx context.Context, s *store.Store, today Day) error {
	_, err := s.Write.CountBatch.Delete().
		Where(countbatch.Or(countbatch.DayLT((today - 1).String()), countbatch.DayGT((today + 1).String()))).Exec(ctx)
	return store.Explain(err)
}

// encode writes the counts of addresses: eight bytes of subject and a number
// each. Those of accounts have a table of their own.
func (l *Ledger) encode(counts map[Subject]int) []byte {
	data := make([]byte, 0, len(counts)*9)
	for subject, n := range counts {
		if _, is := subject.account(); is || !l.addresses {
			continue
		}
		data = binary.BigEndian.AppendUint64(data, uint64(subject))
		data = binary.AppendVarint(data, int64(n))
	}
	return data
}

func decode(data []byte, into map[Subject]int) error {
	for len(data) > 0 {
		if len(data) < 9 {
			return errors.New("a batch of counts is cut")
		}
		subject := Subject(binary.BigEndian.Uint64(data))
		n, size := binary.Varint(data[8:])
		if size <= 0 {
			return errors.New("a batch of counts cannot be read")
		}
		into[subject] += int(n)
		data = data[8+size:]
	}
	return nil
}
