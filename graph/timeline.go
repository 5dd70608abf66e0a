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

// timeline has all versions of all tools since the oldest available release. The
// timeline of the newest release serves earlier releases too.
type timeline struct {
	from     int           // the oldest available release
	versions []toolVersion // by slug, then by release
}

// toolVersion is a tool as it was from the release that wrote it up to, but not
// including, the release until.
type toolVersion struct {
	*indexedTool
	until int
}

// forever is the end of a version that has not been replaced.
const forever = math.MaxInt

// timeline returns the versions of tools up to the release being read, and possibly
// newer ones.
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

// historyFrom returns the oldest available release.
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

// at returns the version of a tool in a release, if the tool was active then.
func at(versions []toolVersion, release int) (v toolVersion, ok bool) {
	i := sort.Search(len(versions), func(i int) bool { return versions[i].since > release }) - 1
	if i < 0 || versions[i].until <= release || !versions[i].active() {
		return v, false
	}
	return versions[i], true
}

// added reports whether a version started because the tool was added or became
// active again. For the oldest available release, this is only known if it is
// release 1.
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

// readable returns the available releases up to the one being read, newest first.
func (r *reader) readable() []*ent.Release { return since(r.index.releases, r.historyFrom()) }

// readable returns the available releases, newest first.
func (x *catalogIndex) readable() []*ent.Release {
	if x == nil || x.release == nil {
		return nil
	}
	return since(x.releases, x.release.HistoryFrom)
}

// since returns the releases with at least a given number. They are newest first.
func since(releases []*ent.Release, from int) []*ent.Release {
	end := slices.IndexFunc(releases, func(release *ent.Release) bool { return release.ID < from })
	if end < 0 {
		return releases
	}
	return releases[:end]
}

// lastDated returns the newest release that is dated on or before a day, or nil.
// The releases are newest first.
func lastDated(releases []*ent.Release, day string) *ent.Release {
	for _, release := range releases {
		if release.FeedDate <= day {
			return release
		}
	}
	return nil
}
