package release

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"palmares/ent"
	"palmares/internal/catalog/search"
)

// history has all versions of everything since the oldest release that can be read.
// It also serves earlier releases than the one it was loaded for.
type history struct {
	from        int // the oldest release that can be read
	categories  []version[Category]
	tools       []version[Tool]           // by slug, then by release
	comparisons []version[ComparisonText] // published ones, as compareComparisons orders them
	prices      []version[PriceChange]    // by tool, newest first
	search      *search.Index             // of the texts of tools
	partial     bool                      // replaced versions are not loaded yet
}

// version is a value as it was from release since up to, but not including, release
// until.
type version[V any] struct {
	value        *V
	since, until int
}

// forever is the end of a version that has not been replaced.
const forever = math.MaxInt

func (v version[V]) has(release int) bool { return v.since <= release && release < v.until }

// at returns the values of a release, in the same order.
func at[V any](versions []version[V], release int) []*V {
	count := 0
	for _, v := range versions {
		if v.has(release) {
			count++
		}
	}
	values := make([]*V, 0, count)
	for _, v := range versions {
		if v.has(release) {
			values = append(values, v.value)
		}
	}
	return values
}

// versionsOf calls visit with the versions of each tool, oldest first.
func (h *history) versionsOf(visit func(versions []version[Tool])) {
	for start := 0; start < len(h.tools); {
		end := start + 1
		for end < len(h.tools) && h.tools[end].value.Slug == h.tools[start].value.Slug {
			end++
		}
		visit(h.tools[start:end])
		start = end
	}
}

// activeAt returns the version of a tool in a release, or nil if the tool was not
// active then.
func activeAt(versions []version[Tool], release int) *Tool {
	i := sort.Search(len(versions), func(i int) bool { return versions[i].since > release }) - 1
	if i < 0 || !versions[i].has(release) || !versions[i].value.Active() {
		return nil
	}
	return versions[i].value
}

// lastActive returns the tools that are or were active, as they were last, by slug.
func (r *Release) lastActive() (tools []*Tool) {
	for _, v := range r.history.tools {
		if v.since > r.Number() || !v.value.Active() {
			continue
		}
		if n := len(tools); n > 0 && tools[n-1].Slug == v.value.Slug {
			tools = tools[:n-1]
		}
		tools = append(tools, v.value)
	}
	return tools
}

// added reports whether a version started because the tool was added or became
// active again. The first import adds tools only if firstImport is set. For another
// oldest release, it is not known which tools it added.
func (h *history) added(versions []version[Tool], i int, firstImport bool) bool {
	v := versions[i]
	if !v.value.Active() || v.since <= h.from && (h.from > 1 || !firstImport) {
		return false
	}
	return i == 0 || versions[i-1].until < v.since || !versions[i-1].value.Active()
}

// retired reports whether the tool was retired when a version ended.
func retired(versions []version[Tool], i int) bool {
	return versions[i].value.Active() && i+1 < len(versions) &&
		!versions[i+1].value.Active() && versions[i+1].since == versions[i].until
}

// earlierRelease derives an earlier release, which must be one of All.
func (r *Release) earlierRelease(info *ent.Release) *Release {
	earlier := newRelease(info, r.All[slices.Index(r.All, info):], r.history)
	earlier.sortLike(r)
	return earlier
}

// sortAll sorts the tools in all orders, so that no request has to. It takes the order of
// what has not changed from the previous release, which may be nil.
func (r *Release) sortAll(previous *Release) {
	if previous != nil {
		r.sortLike(previous)
	}
	for o := range r.orders {
		r.Sorted(o)
	}
	r.like = nil // it would keep the previous release in memory
}

// sortedLike is a release that shares most of its tools with the one that has it.
type sortedLike struct {
	release      *Release
	here, within []bool // whether both have the tool at a position of the one, and of the other
}

// sortLike makes a release take the order of the tools that it shares with another one
// from there.
func (r *Release) sortLike(other *Release) {
	r.like = &sortedLike{other, make([]bool, len(r.Tools)), make([]bool, len(other.Tools))}
	for i, j := 0, 0; i < len(r.Tools) && j < len(other.Tools); {
		switch c := strings.Compare(r.Tools[i].Slug, other.Tools[j].Slug); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			shared := r.Tools[i] == other.Tools[j]
			r.like.here[i], r.like.within[j] = shared, shared
			i, j = i+1, j+1
		}
	}
}

// sorted sorts the tools in an order.
func (r *Release) sorted(o Order) sorted {
	places := make(map[*Tool]int32, len(r.Tools))
	for i, t := range r.Tools {
		places[t] = int32(i) //nolint:gosec // the catalog fits into memory
	}
	list := sorted{tools: r.sort(o)}
	list.positions = make([]int32, len(list.tools))
	for i, t := range list.tools {
		list.positions[i] = places[t]
	}
	return list
}

// sort returns the tools in an order. It takes the order of shared tools from another
// release, if there is one, and sorts only the rest.
func (r *Release) sort(o Order) []*Tool {
	var own []*Tool
	for i, t := range r.Tools {
		if t.Active() == o.ofActive() && (r.like == nil || !r.like.here[i]) {
			own = append(own, t)
		}
	}
	compare := o.Comparer()
	slices.SortFunc(own, compare)
	if r.like == nil {
		return slices.Clip(own)
	}
	shared := r.like.release.orders[o]()
	all := make([]*Tool, 0, len(shared.tools)+len(own))
	for i, t := range shared.tools {
		if !r.like.within[shared.positions[i]] {
			continue
		}
		for len(own) > 0 && compare(own[0], t) < 0 {
			all, own = append(all, own[0]), own[1:]
		}
		all = append(all, t)
	}
	return append(all, own...)
}

// rename is a category that another one followed: a release added the one, removed the
// other, and moved tools.
type rename struct {
	release  int
	from, to string
}

// FormerSlugs returns the slugs that categories had before, newest first, by slug. Renames
// are known since the oldest release that can be read.
func (r *Release) FormerSlugs() map[string][]string {
	added, removed := map[rename]bool{}, map[rename]bool{}
	all := r.history.categories // by slug, then by release
	for i, v := range all {
		slug := v.value.Slug
		if v.since > r.history.from && (i == 0 || all[i-1].value.Slug != slug || all[i-1].until < v.since) {
			added[rename{release: v.since, to: slug}] = true
		}
		if i+1 == len(all) || all[i+1].value.Slug != slug || all[i+1].since > v.until {
			removed[rename{release: v.until, from: slug}] = true
		}
	}
	found := map[rename]bool{}
	r.history.versionsOf(func(versions []version[Tool]) {
		for i := 1; i < len(versions) && len(added) > 0; i++ {
			before, after := versions[i-1], versions[i]
			at := after.since
			if before.until == at && at <= r.Number() && added[rename{release: at, to: after.value.Category}] &&
				removed[rename{release: at, from: before.value.Category}] {
				found[rename{at, before.value.Category, after.value.Category}] = true
			}
		}
	})
	newest := slices.SortedFunc(maps.Keys(found), func(a, b rename) int {
		return cmp.Or(b.release-a.release, strings.Compare(a.from, b.from))
	})
	former := map[string][]string{}
	for i, last := range newest {
		known := map[string]int{last.to: last.release + 1} // until which release each slug was in use
		if former[last.to] != nil {
			continue
		}
		for _, one := range newest[i:] {
			if until, ok := known[one.to]; ok && one.release < until && known[one.from] == 0 {
				known[one.from] = one.release
				former[last.to] = append(former[last.to], one.from)
			}
		}
	}
	return former
}
