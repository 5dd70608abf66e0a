package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
)

// EventName and NewChangeType convert between event types, which have dots, and
// GraphQL names, which cannot.
func (t ChangeType) EventName() string { return strings.ReplaceAll(string(t), "_", ".") }
func NewChangeType(event string) ChangeType {
	return ChangeType(strings.ReplaceAll(event, ".", "_"))
}

// Changes returns events, with the tools that they are about and that are active now.
func (v *View) Changes(events []*journal.Event) []*Change {
	changes := Map(events, func(e *journal.Event) *Change {
		return &Change{
			ID: e.ID(), Type: NewChangeType(e.Type), Release: e.Release, PublishedAt: e.At,
			Slug: OrNil(e.Slug), Category: OrNil(e.Category), OtherCategory: OrNil(e.OtherCategory),
			Fields: e.Fields, Before: json.RawMessage(e.Before), After: json.RawMessage(e.After),
		}
	})
	var found []*release.Tool
	var changed []*Change
	for i, e := range events {
		// A comparison may have the slug of a tool.
		if t := v.Tool(e.Slug); t != nil && e.AboutTool() && t.Active() {
			found, changed = append(found, t), append(changed, changes[i])
		}
	}
	for i, t := range v.Tools(found) {
		changed[i].Tool = t
	}
	return changes
}

// NewPublication converts the event of a release.
func NewPublication(event *journal.Event) (*Publication, error) {
	var counts journal.Publication
	if err := json.Unmarshal(event.After, &counts); err != nil {
		return nil, fmt.Errorf("event %s: %w", event.ID(), err)
	}
	p := &Publication{
		ID: event.ID(), Release: event.Release, PublishedAt: event.At, UpdatedAt: counts.UpdatedAt,
		ToolsTotal: counts.ToolsTotal, ToolsRetired: counts.ToolsRetired, ComparisonsTotal: counts.Comparisons,
	}
	for _, name := range journal.Events {
		if n := counts.Events[name]; n > 0 {
			p.Events = append(p.Events, &ChangeCount{Type: NewChangeType(name), Count: n})
		}
	}
	return p, nil
}

// ToolVersions returns the versions of each tool that events created, the newest first. The
// events are newest last.
func (v *View) ToolVersions(events []*journal.Event) map[string][]*ToolVersion {
	versions := map[string][]*ToolVersion{}
	until := map[string]*int{} // the release that ended a tool's next version
	for _, e := range slices.Backward(events) {
		if e.Type != journal.EventToolRemoved {
			versions[e.Slug] = append(versions[e.Slug], &ToolVersion{
				FirstRelease: e.Release, LastRelease: until[e.Slug],
				Date: v.All[v.Number()-e.Release].FeedDate,
				Type: NewChangeType(e.Type), Event: e.Type, Fields: e.Fields,
				Before: json.RawMessage(e.Before), After: json.RawMessage(e.After),
			})
		}
		last := e.Release - 1
		until[e.Slug] = &last
	}
	return versions
}

// Releases returns releases.
func (v *View) Releases(releases []*ent.Release) []*Release {
	historyFrom := v.HistoryFrom()
	return Map(releases, func(release *ent.Release) *Release {
		return &Release{
			ID: v.ID(ReleasePrefix, strconv.Itoa(release.ID)), Number: release.ID,
			Date: release.FeedDate, PublishedAt: release.ImportedAt,
			Readable: release.ID >= historyFrom, Stats: NewStatistics(release),
		}
	})
}

// NewStatistics returns the statistics of a release, which are zero before the first one.
func NewStatistics(release *ent.Release) *Statistics {
	if release == nil {
		return &Statistics{}
	}
	s := &Statistics{
		ToolsTotal: release.ToolsTotal, ToolsTested: release.ToolsTested, ToolsAvgScore: release.ToolsAvgScore,
		ToolsRetired: release.ToolsRetired, ComparisonsTotal: release.ComparisonsTotal,
	}
	if s.ToolsAvgScore != nil {
		s.ToolsAvgScoreOrZero = *s.ToolsAvgScore
	}
	return s
}

// EmbeddingsChanges returns changes of documents. Those to store are siblings.
func (v *View) EmbeddingsChanges(changes []release.DocumentChange) []EmbeddingsChange {
	var stored []*release.Tool
	for _, c := range changes {
		if c.Reason == "" {
			stored = append(stored, v.Tool(c.Slug))
		}
	}
	tools := v.Tools(stored)
	return Map(changes, func(c release.DocumentChange) EmbeddingsChange {
		if c.Reason != "" {
			return &EmbeddingsDeletion{Slug: c.Slug, Deleted: true, Reason: EmbeddingsDeletionReason(c.Reason)}
		}
		document := tools[0].Embeddings()
		tools = tools[1:]
		return document
	})
}
