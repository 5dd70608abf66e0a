package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"palmares/ent"
	"palmares/internal/core/store"
)

// timeline has the versions of all tools, from the first release that can be
// read on. That of the newest release serves all earlier ones as well.
type timeline struct {
	from     int           // the first release that can be read
	versions []toolVersion // by slug, then by release
}

// toolVersion is a tool as it was from the release that wrote it to the one
// before until.
type toolVersion struct {
	*indexedTool
	until int
}

// forever is the end of a version that nothing has replaced.
const forever = math.MaxInt

// timeline returns the versions of tools up to the release that is read, and
// perhaps newer ones.
func (r *reader) timeline(ctx context.Context) (*timeline, error) {
	for _, x := range []*catalogIndex{r.executor.index.Load(), r.index} {
		if known := x.versions.Load(); known != nil && x.number() >= r.index.number() {
			return known, nil
		}
	}
	if !store.InTransaction(ctx) {
		return nil, store.ErrNeedsTransaction
	}
	return r.index.readTimeline(ctx, r.catalog, r.historyFrom())
}

// historyFrom returns the first release that can be read.
func (r *reader) historyFrom() int {
	if newest := r.executor.index.Load().release; newest != nil {
		return newest.HistoryFrom
	}
	return 0
}

// readTimeline reads the versions that the tools of the index replaced.
func (x *catalogIndex) readTimeline(ctx context.Context, catalog Catalog, from int) (*timeline, error) {
	if known := x.versions.Load(); known != nil {
		return known, nil
	}
	line := &timeline{from: from}
	for _, t := range x.tools {
		line.versions = append(line.versions, toolVersion{t, forever})
	}
	rows, err := catalog.Select(store.WithAllVersions(ctx), "SELECT "+toolColumns+", until_release FROM tools_versions WHERE until_release <= $1", x.number())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var until int
	var size int64
	if err := scanTools(rows, []any{&until}, func(t *indexedTool) {
		t.nameKey = "" // only orders need it
		size += t.size()
		line.versions = append(line.versions, toolVersion{t, until})
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(line.versions, func(a, b toolVersion) int {
		return cmp.Or(strings.Compare(a.slug, b.slug), a.since-b.since)
	})
	if x.versions.CompareAndSwap(nil, line) {
		x.added.Add(size + int64(len(line.versions))*int64(unsafe.Sizeof(toolVersion{})))
	}
	return line, nil
}

// tools calls visit with the versions of each tool, oldest first.
func (l *timeline) tools(visit func(versions []toolVersion)) {
	for start := 0; start < len(l.versions); {
		end := start + 1
		for end < len(l.versions) && l.versions[end].slug == l.versions[start].slug {
			end++
		}
		visit(l.versions[start:end])
		start = end
	}
}

// at returns the version of a tool in a release, if it was active then.
func at(versions []toolVersion, release int) (v toolVersion, ok bool) {
	i := sort.Search(len(versions), func(i int) bool { return versions[i].since > release }) - 1
	if i < 0 || versions[i].until <= release || !versions[i].active() {
		return v, false
	}
	return versions[i], true
}

// added reports whether a version began with the release that added the tool, or
// that made it active again. Which tools the first release that can be read
// added is only known of the very first one.
func (l *timeline) added(versions []toolVersion, i int) bool {
	v := versions[i]
	if !v.active() || v.since <= l.from && l.from > 1 {
		return false
	}
	return i == 0 || versions[i-1].until < v.since || !versions[i-1].active()
}

// retired reports whether the tool was retired when a version ended.
func retired(versions []toolVersion, i int) bool {
	return versions[i].active() && i+1 < len(versions) && !versions[i+1].active() && versions[i+1].since == versions[i].until
}

// readable returns the releases up to the one that is read that can be read,
// newest first.
func (r *reader) readable() []*ent.Release { return since(r.index.releases, r.historyFrom()) }

// readable returns the releases that can be read, newest first.
func (x *catalogIndex) readable() []*ent.Release {
	if x == nil || x.release == nil {
		return nil
	}
	return since(x.releases, x.release.HistoryFrom)
}

// since returns the releases, newest first, from a number on.
func since(releases []*ent.Release, from int) []*ent.Release {
	end := slices.IndexFunc(releases, func(release *ent.Release) bool { return release.ID < from })
	if end < 0 {
		return releases
	}
	return releases[:end]
}

// lastDated returns the last of some releases, newest first, that is dated on or
// before a day; nil if there is none.
func lastDated(releases []*ent.Release, day string) *ent.Release {
	for _, release := range releases {
		if release.FeedDate <= day {
			return release
		}
	}
	return nil
}
