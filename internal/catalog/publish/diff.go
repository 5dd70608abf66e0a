package publish

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/ent"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
)

// Diff is what publishing a feed would change. Its JSON is documented in
// docs/operations.md. Lists are sorted by slug.
type Diff struct {
	UpdatedAt string      `json:"updated_at"` // of the feed
	Release   int         `json:"release,omitzero"`
	Base      *DiffBase   `json:"base"`             // nil for an empty catalog
	Refusal   string      `json:"refusal,omitzero"` // why an import needs --force
	Summary   DiffSummary `json:"summary"`

	Tools       []Change       `json:"tools"` // active and retired
	Comparisons []Change       `json:"comparatifs"`
	Categories  []Change       `json:"categories"`
	Prices      []PriceDiff    `json:"price_changes"`
	Backfilled  []PriceDiff    `json:"price_history"`
	Scores      []ScoreDiff    `json:"score_changes"`
	Events      map[string]int `json:"events"` // by type
}

// DiffBase is the catalog that the feed was compared with.
type DiffBase struct {
	Feed      string `json:"feed,omitzero"` // the name of a feed, or
	Release   int    `json:"release,omitzero"`
	UpdatedAt string `json:"updated_at"`
}

// DiffSummary counts the records that change, and those that do not.
type DiffSummary struct {
	Tools       Counts `json:"tools"`
	Comparisons Counts `json:"comparatifs"`
	Categories  Counts `json:"categories"`
}

// The kinds of changes.
const (
	DiffCreated = "created"
	DiffUpdated = "updated"
	DiffRetired = "retired"
	DiffRemoved = "removed"
)

// Change is a change of one record.
type Change struct {
	Change string `json:"change"`
	Slug   string `json:"slug"`
	Name   string `json:"name"` // of a tool, title of a comparison, or label of a category
	// Type is the type of the record after the change, or before it is removed.
	Type   string   `json:"type"`
	Reason string   `json:"reason,omitzero"` // why a tool is retired
	Fields []string `json:"fields,omitzero"` // that an update changes
	// PreviousType is set for a retired tool that becomes active, and for an
	// active one that is retired.
	PreviousType string `json:"previous_type,omitzero"`
}

// PriceDiff is a change of a price or a pricing model.
type PriceDiff struct {
	Slug       string   `json:"slug"`
	ChangedAt  string   `json:"changed_at"`
	OldPricing string   `json:"old_pricing"`
	OldPrice   string   `json:"old_price"`
	NewPricing string   `json:"new_pricing"`
	NewPrice   string   `json:"new_price"`
	Percent    *float64 `json:"percent"` // nil if the prices cannot be compared
}

// ScoreDiff is a change of a score; nil if the tool has none.
type ScoreDiff struct {
	Slug    string   `json:"slug"`
	Old     *float64 `json:"old"`
	New     *float64 `json:"new"`
	Percent *float64 `json:"percent"`
}

// Compare returns what an import of a feed would change, and changes nothing. It
// returns *feed.ValidationError if the feed is not valid.
func Compare(ctx context.Context, s *store.Store, source feed.Source, progress func(stage string, done, total int64)) (*Diff, error) {
	d := &Diff{
		Tools: []Change{}, Comparisons: []Change{}, Categories: []Change{},
		Prices: []PriceDiff{}, Backfilled: []PriceDiff{}, Scores: []ScoreDiff{}, Events: map[string]int{},
	}
	report, err := Import(ctx, s, source, Options{DryRun: true, Progress: progress, diff: d})
	if err != nil {
		return nil, err
	}
	d.UpdatedAt, d.Release = report.FeedDate, report.Release
	d.Summary = DiffSummary{report.Tools, report.Comparisons, report.Categories}
	for _, changes := range [][]Change{d.Tools, d.Comparisons, d.Categories} {
		slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Slug, b.Slug) })
	}
	for _, prices := range [][]PriceDiff{d.Prices, d.Backfilled} {
		slices.SortStableFunc(prices, func(a, b PriceDiff) int { return cmp.Compare(a.Slug, b.Slug) })
	}
	slices.SortFunc(d.Scores, func(a, b ScoreDiff) int { return cmp.Compare(a.Slug, b.Slug) })
	return d, nil
}

// start records what the feed is compared with, and why an import would refuse it.
func (d *Diff) start(newest *ent.Release, implausible error) {
	if newest != nil {
		d.Base = &DiffBase{Release: newest.ID, UpdatedAt: newest.FeedDate}
	}
	if implausible != nil {
		d.Refusal = implausible.Error()
	}
}

// diffState is what a diff shows of a record in the journal.
type diffState struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Label     string   `json:"label"`
	Score     *float64 `json:"score"`
	Reason    string   `json:"reason"`
	RetiredAt string   `json:"retired_at"`
}

func (s diffState) toolType() string {
	if s.RetiredAt != "" {
		return record.TypeRetired
	}
	return record.TypeTool
}

// add adds an entry of the journal.
func (d *Diff) add(entry journal.Entry) error {
	if entry.Event != "" {
		d.Events[entry.Event]++
	}
	noun, verb, _ := strings.Cut(entry.Kind, ".")
	switch noun {
	case "price":
		return d.addPrice(entry)
	case "embeddings", "catalog":
		return nil // only their events are counted
	}
	var before, after diffState
	if err := readStates(entry, &before, &after); err != nil {
		return err
	}
	shown := cmp.Or(after, before)
	change := Change{Change: verb, Slug: entry.Slug, Name: cmp.Or(shown.Name, shown.Title, shown.Label), Type: noun, Reason: after.Reason}
	if verb == DiffUpdated {
		var err error
		if change.Fields, err = changedFields(entry); err != nil {
			return err
		}
	}
	switch noun {
	case record.TypeComparison:
		d.Comparisons = append(d.Comparisons, change)
		return nil
	case record.TypeCategory:
		d.Categories = append(d.Categories, change)
		return nil
	}
	change.Type = shown.toolType()
	if was := before.toolType(); entry.Before != nil && was != change.Type {
		change.PreviousType = was
	}
	d.Tools = append(d.Tools, change)
	if slices.Contains(change.Fields, "score") {
		score := ScoreDiff{Slug: entry.Slug, Old: before.Score, New: after.Score}
		if score.Old != nil && score.New != nil {
			score.Percent = pricing.Percent(*score.Old, *score.New)
		}
		d.Scores = append(d.Scores, score)
	}
	return nil
}

func (d *Diff) addPrice(entry journal.Entry) error {
	var before, after priceState
	if err := readStates(entry, &before, &after); err != nil {
		return err
	}
	_, percent := pricing.Compare(pricing.Read(before.Price), pricing.Read(after.Price))
	price := PriceDiff{entry.Slug, after.ChangedAt, before.Pricing, before.Price, after.Pricing, after.Price, percent}
	if entry.Kind == journal.PriceChanged {
		d.Prices = append(d.Prices, price)
	} else {
		d.Backfilled = append(d.Backfilled, price)
	}
	return nil
}

// changedFields returns the names of the fields that an update changes, sorted, as a
// feed spells them.
func changedFields(entry journal.Entry) ([]string, error) {
	var before, after map[string]jsontext.Value
	if err := readStates(entry, &before, &after); err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, states := range [][2]map[string]jsontext.Value{{before, after}, {after, before}} {
		for name, value := range states[0] {
			if string(value) != string(states[1][name]) {
				changed[name] = true
			}
		}
	}
	if changed["sections_hash"] { // the journal has the hash in place of the sections
		delete(changed, "sections_hash")
		changed["sections"] = true
	}
	if changed["winner"] { // its name changes, too
		delete(changed, "winner_name")
	}
	return sortedKeys(changed), nil
}

// readStates decodes the states of an entry; those that do not exist stay empty.
func readStates(entry journal.Entry, before, after any) error {
	if entry.Before != nil {
		if err := json.Unmarshal(entry.Before, before); err != nil {
			return err
		}
	}
	if entry.After != nil {
		return json.Unmarshal(entry.After, after)
	}
	return nil
}
