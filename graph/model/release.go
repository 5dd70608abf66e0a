package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/journal"
)

// Release is a release of the catalog.
type Release struct {
	of   *ent.Release
	view *View
}

// Releases returns releases.
func (v *View) Releases(found []*ent.Release) []*Release {
	releases := make([]*Release, len(found))
	for i, r := range found {
		releases[i] = &Release{r, v}
	}
	return releases
}

// IsNode marks the interface that Release implements.
func (Release) IsNode() {}

// ID returns the global identifier.
func (r *Release) ID() string { return r.view.ID(ReleasePrefix, strconv.Itoa(r.of.ID)) }

// Number returns the number of the release.
func (r *Release) Number() int { return r.of.ID }

// Date returns the date of the feed.
func (r *Release) Date() string { return r.of.FeedDate }

// PublishedAt returns when the release was imported.
func (r *Release) PublishedAt() time.Time { return r.of.ImportedAt }

// Readable reports whether an operation can read the release.
func (r *Release) Readable() bool { return r.of.ID >= r.view.HistoryFrom() }

// Stats returns the figures of the release.
func (r *Release) Stats() *Statistics { return &Statistics{r.of} }

// Statistics are the figures of a release. Most fields are those of its row.
type Statistics struct{ *ent.Release }

// ToolsAvgScoreOrZero returns the average score; 0 if no tool has one.
func (s *Statistics) ToolsAvgScoreOrZero() float64 {
	if s.ToolsAvgScore == nil {
		return 0
	}
	return *s.ToolsAvgScore
}

// Change is an event of the journal. Fields that look the same are those of the event.
type Change struct {
	*journal.Event
	Tool *Tool // that it is about, if it is active now
}

// IsNode marks the interface that Change implements.
func (Change) IsNode() {}

// Type returns the type of the event.
func (c *Change) Type() ChangeType { return ChangeTypeOf(c.Event.Type) }

// ChangeTypeOf returns an event type, which has dots, as GraphQL names it, which cannot.
func ChangeTypeOf(event string) ChangeType { return ChangeType(strings.ReplaceAll(event, ".", "_")) }

// PublishedAt returns when the release of the event was imported.
func (c *Change) PublishedAt() time.Time { return c.At }

// Slug, Category and OtherCategory return nil for what the event does not have.
func (c *Change) Slug() *string          { return orNil(c.Event.Slug) }
func (c *Change) Category() *string      { return orNil(c.Event.Category) }
func (c *Change) OtherCategory() *string { return orNil(c.Event.OtherCategory) }

// Before and After return the states of the record.
func (c *Change) Before() json.RawMessage { return json.RawMessage(c.Event.Before) }
func (c *Change) After() json.RawMessage  { return json.RawMessage(c.Event.After) }

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
