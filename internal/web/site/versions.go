package site

import (
	"fmt"
	"html/template"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"palmares/graph"
	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/web/words"
)

// release is one published state of the catalog.
type release struct {
	Number            int
	Date, PublishedAt string
	Readable          bool
	Stats             struct{ ToolsTotal, ToolsRetired, ComparisonsTotal int }
	// Headline says in a sentence or two which scores and prices changed most, and which tools
	// close.
	Headline string `json:"-"`
	// How many more there are than in the edition before, in a list of editions.
	Delta struct{ Tools, Retired, Comparisons int } `json:"-"`
}

// version is a new state of a tool, as the API returns it.
type version struct {
	FirstRelease  int
	Date, Type    string
	Fields        []string
	Before, After map[string]any
}

// versionHistory is the list of versions on a tool's page, newest first.
type versionHistory struct {
	Recent, Older []versionEntry // Older is collapsed
	Truncated     bool           // there are more
	JSON          string         // path of the full list in the API
}

type versionEntry struct {
	Event   string // what happened
	Release int    // 0 before the first one
	Date    string
	Path    string // the tool's page as of the release, or "" if that cannot be read
	Changes []fieldChange
}

// fieldChange is a field that differs between two versions. Before is nil if the
// field is only listed for its new value.
type fieldChange struct {
	name   string
	Field  string
	Before *fieldValue
	After  fieldValue
	delta  // of a price or score, if both are known
}

type fieldValue struct {
	Text string
	Lang template.HTMLAttr // language of Text if it is not that of the page

	Missing bool // there was no value, which Text says
}

const (
	maxVersions    = 50 // one less than the operations select
	recentVersions = 5
)

func newVersionHistory(r *request, t *tool) versionHistory {
	slug, versions := t.Slug, t.Versions
	h := versionHistory{Truncated: len(versions) > maxVersions, JSON: r.Link("/api/v1/tools/", slug, "/versions")}
	for _, v := range versions[:min(len(versions), maxVersions)] {
		entry := versionEntry{
			Event: r.lang.Text(v.event()), Release: v.FirstRelease, Date: v.Date, Changes: v.changes(r),
		}
		for i := range entry.Changes {
			for _, e := range t.History {
				if c := &entry.Changes[i]; c.name == "price" && c.Before != nil && e.At <= v.Date && e.Price == textIn(v.After, "price") {
					c.Since = e.At
				}
			}
		}
		if isReadable(r.shown, v.FirstRelease) {
			entry.Path = v.pageAsOf(slug, v.FirstRelease)
		}
		h.Recent = append(h.Recent, entry)
	}
	if !h.Truncated {
		h.addEarlier(r, t)
	}
	recent := min(len(h.Recent), recentVersions)
	h.Recent, h.Older = h.Recent[:recent], h.Recent[recent:]
	return h
}

// addEarlier adds the prices and scores from before the first release with the tool.
func (h *versionHistory) addEarlier(r *request, t *tool) {
	until, event := "9999", r.lang.Text("Updated")
	if len(h.Recent) > 0 {
		first := h.Recent[len(h.Recent)-1]
		until, event = first.Date, r.lang.Text("Before edition %d", first.Release)
	}
	state := func(e historyEntry) map[string]any {
		values := map[string]any{"price": e.Price, "pricing": e.Pricing}
		if e.Score != nil {
			values["score"] = *e.Score
		}
		return values
	}
	for i, e := range slices.Backward(t.History) {
		v, entry := version{Type: toolUpdated, After: state(e)}, versionEntry{Event: event, Date: e.At}
		if i > 0 {
			v.Before = state(t.History[i-1])
		}
		entry.Changes = v.changesOf(r, []string{"pricing", "price", "score"})
		if i == 0 {
			entry.Changes = slices.DeleteFunc(entry.Changes, func(c fieldChange) bool { return v.After[c.name] == nil })
		}
		if e.At < until && len(entry.Changes) > 0 {
			h.Recent = append(h.Recent, entry)
		}
	}
}

const (
	toolCreated    = "tool_created"
	toolRetired    = "tool_retired"
	retiredUpdated = "retired_updated"
)

func (v *version) event() lang.Message {
	switch {
	case v.Type == toolRetired:
		return "Retired"
	case v.Type != toolCreated:
		return "Updated"
	case v.Before != nil: // the retired tool
		return "Added again"
	}
	return "Added"
}

// pageAsOf returns the path of the tool's page as of a release with this version.
func (v *version) pageAsOf(slug string, release int) string {
	list := "/tools/"
	if v.After["retired_at"] != nil {
		list = "/cimetiere/"
	}
	return fmt.Sprintf("%s%s?%s=%d", list, slug, graph.AsOfName, release)
}

// changes lists the fields to show: those that changed, the price and score of a
// tool that was added, or why one was retired.
func (v *version) changes(r *request) (changes []fieldChange) {
	fields := v.Fields
	switch v.Type {
	case toolCreated:
		fields = []string{"pricing", "price", "score"}
	case toolRetired:
		fields = []string{"name", "reason", "retired_at", "note"}
	}
	return v.changesOf(r, fields)
}

// changesOf lists some fields.
func (v *version) changesOf(r *request, fields []string) (changes []fieldChange) {
	l := r.lang
	for _, field := range fields {
		if field == "updated_at" && len(fields) > 1 { // it changes with every update
			continue
		}
		before, existed := v.Before[field]
		existed = existed && v.Type != toolCreated // a retired tool has a score too
		after := v.After[field]
		if existed && reflect.DeepEqual(before, after) {
			continue
		}
		change := fieldChange{name: field, Field: fieldName(l, field)}
		if f, _ := record.FieldNamed(field); f.Kind == record.Nested {
			change.After = fieldValue{Text: l.Text("changed")}
			changes = append(changes, change)
			continue
		}
		start, to := 0, fieldText(r, field, after)
		if existed {
			from := fieldText(r, field, before)
			start = differenceStart(from, to)
			shown := showField(l, field, excerpt(from, start), before)
			shown.Missing = before == nil
			change.Before = &shown
			change.delta = v.delta(l, field)
		}
		change.After = showField(l, field, excerpt(to, start), after)
		changes = append(changes, change)
	}
	return changes
}

// delta returns how a price or score changed; zero for any other field.
func (v *version) delta(l lang.Language, field string) (d delta) {
	before, known := v.Before[field].(float64)
	after, stillKnown := v.After[field].(float64)
	switch {
	case field == "price":
		d = priceDelta(l, textIn(v.Before, field), textIn(v.After, field), textIn(v.After, "changed_at"))
	case field == "score" && known && stillKnown:
		d = scoreDelta(l, before, after)
	}
	return d
}

// fieldName returns the name of a field.
func fieldName(l lang.Language, field string) string {
	name, _ := words.Field(l, field)
	return name
}

// fieldText formats a value as the rest of the page does.
func fieldText(r *request, field string, value any) string {
	l := r.lang
	described, _ := record.FieldNamed(field)
	switch v := value.(type) {
	case nil:
		switch {
		case field == "score":
			return l.Text("not tested")
		case described.Mean != "":
			return l.Text("not rated")
		case field == "ends_at":
			return l.Text("none announced")
		}
		return l.Text("none")
	case bool:
		if v {
			return l.Text("yes")
		}
		return l.Text("no")
	case float64:
		if field == "tier" {
			return fmt.Sprint(v)
		}
		return formatScore(l, &v)
	case string:
		switch described.Kind {
		case record.Code:
			return label(l, v)
		case record.Price:
			return priceText(l, v)
		case record.Date:
			return l.ShortDayOf(v)
		}
		if field == "category" {
			return r.named(v).Label
		}
		return v
	}
	return fmt.Sprint(value)
}

// frenchFields have text from the catalog.
var frenchFields = []string{"category", "tagline", "note", "label", "winner_note"}

func showField(l lang.Language, field, text string, value any) fieldValue {
	if value != nil && slices.Contains(frenchFields, field) {
		return fieldValue{Text: lang.Typeset(text), Lang: catalogLang(l)}
	}
	shown := fieldValue{Text: text}
	if price, isText := value.(string); isText && field == "price" {
		if _, ok := words.Price(l, price); !ok {
			shown.Lang = catalogLang(l)
		}
	}
	return shown
}

const (
	maxExcerpt     = 140 // characters
	excerptContext = 40  // characters before a difference
)

// differenceStart returns the position in characters from which to show two
// texts, so that their difference is visible after they are shortened.
func differenceStart(a, b string) int {
	one, other := []rune(a), []rune(b)
	if len(one) <= maxExcerpt && len(other) <= maxExcerpt {
		return 0
	}
	same := 0
	for same < min(len(one), len(other)) && one[same] == other[same] {
		same++
	}
	if same < maxExcerpt/2 {
		return 0
	}
	start := same - excerptContext
	if space := slices.IndexFunc(one[start:same], unicode.IsSpace); space >= 0 {
		start += space + 1
	}
	return start
}

// excerpt shortens a text from a position on.
func excerpt(text string, start int) string {
	runes := []rune(text)
	if start > 0 {
		runes = append([]rune("…"), runes[start:]...)
	}
	if len(runes) <= maxExcerpt {
		return string(runes)
	}
	short := string(runes[:maxExcerpt])
	if end := strings.LastIndexFunc(short, unicode.IsSpace); end > len(short)/2 {
		short = short[:end]
	}
	return strings.TrimRightFunc(short, unicode.IsSpace) + "…"
}
