package graph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
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

// toolVersion is a tool as it was in the releases from since to before until.
type toolVersion struct {
	*indexedTool
	since, until int
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

// readTimeline reads when the tools of the index got their values, and the
// versions that they replaced.
func (x *catalogIndex) readTimeline(ctx context.Context, catalog Catalog, from int) (*timeline, error) {
	line := &timeline{from: from}
	rows, err := catalog.Select(ctx, "SELECT slug, since_release FROM tools")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var slug string
		v := toolVersion{until: forever}
		if err := rows.Scan(&slug, &v.since); err != nil {
			return nil, err
		}
		i, ok := x.find(slug)
		if !ok {
			return nil, fmt.Errorf("tool %s is missing from the index of release %d", slug, x.number())
		}
		v.indexedTool = &x.tools[i]
		line.versions = append(line.versions, v)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	size, err := line.readReplaced(ctx, catalog, x.number())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(line.versions, func(a, b toolVersion) int {
		return cmp.Or(strings.Compare(a.slug, b.slug), a.since-b.since)
	})
	if x.versions.CompareAndSwap(nil, line) {
		x.bytes.Add(size + int64(len(line.versions))*int64(unsafe.Sizeof(toolVersion{})))
	}
	return line, nil
}

// readReplaced reads the versions that ended up to a release. It returns how many
// bytes they take.
func (l *timeline) readReplaced(ctx context.Context, catalog Catalog, release int) (size int64, err error) {
	rows, err := catalog.Select(ctx, "SELECT "+indexedColumns+", since_release, until_release FROM tools_versions WHERE until_release <= "+strconv.Itoa(release))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	scan := newToolScanner()
	for rows.Next() {
		v := toolVersion{indexedTool: &indexedTool{}}
		if err := scan.row(rows, v.indexedTool, &v.since, &v.until); err != nil {
			return 0, err
		}
		v.nameKey = "" // only orders need it
		size += int64(unsafe.Sizeof(*v.indexedTool)) + int64(len(v.slug))
		l.versions = append(l.versions, v)
	}
	return size, rows.Err()
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
