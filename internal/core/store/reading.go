package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"palmares/ent"
)

// Snapshot runs read with a client that sees one state of the database, and with
// the newest release, or nil before the first import.
func (s *Store) Snapshot(ctx context.Context, read func(db *ent.Client, newest *ent.Release) error) error {
	opts := &sql.TxOptions{ReadOnly: true, Isolation: s.isolation(sql.LevelRepeatableRead)}
	return explain(inTx(ctx, s.Read, opts, func(tx *ent.Tx) error {
		newest, err := NewestRelease(ctx, tx.Release)
		if err != nil {
			return err
		}
		return read(tx.Client(), newest)
	}))
}

// ErrNoRelease is returned for a release that does not exist or was pruned. Errors
// that wrap it add its number and the releases that can be read.
var ErrNoRelease = errors.New("no such release")

// CheckReadable returns an error unless the release with a number can be read: the
// newest one, or an earlier one that was not pruned.
func CheckReadable(number int, newest *ent.Release) error {
	switch {
	case newest == nil:
		return ErrNoRelease
	case number == newest.ID:
		return nil
	case newest.HistoryFrom == newest.ID:
		return fmt.Errorf("%w: %d (only release %d can be read)", ErrNoRelease, number, newest.ID)
	case number > newest.ID || number < newest.HistoryFrom:
		return fmt.Errorf("%w: %d (releases %d to %d can be read)", ErrNoRelease, number, newest.HistoryFrom, newest.ID)
	}
	return nil
}

// Verify returns ErrNoRelease unless a release can still be read. Statements that
// select its rows before (see Versioned.At) then saw all of them.
func (s *Store) Verify(ctx context.Context, release *ent.Release) error {
	newest, err := NewestRelease(ctx, s.Read.Release)
	if err != nil || SameRelease(newest, release) {
		return err
	}
	if err := CheckReadable(release.ID, newest); err != nil {
		return err
	}
	stored, err := s.Read.Release.Get(ctx, release.ID)
	if err == nil && !stored.ImportedAt.Equal(release.ImportedAt) { // a backup was restored
		return ErrNoRelease
	}
	return err
}
