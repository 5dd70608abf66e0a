package graph

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const maxNodes = 100

func (queryResolver) Node(ctx context.Context, id string) (model.Node, error) {
	nodes, err := readerFrom(ctx).nodes(ctx, "id", []string{id})
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

func (queryResolver) Nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxNodes {
		return nil, problem.New(problem.BadInput, "ids must have at most %d identifiers (got %d).", maxNodes, len(ids))
	}
	return readerFrom(ctx).nodes(ctx, "ids", ids)
}

// nodes returns the objects with the given identifiers, or nil for those that do not
// exist. All objects of a type are siblings.
func (r *reader) nodes(ctx context.Context, argument string, ids []string) ([]model.Node, error) {
	keys := map[string][]string{} // by prefix
	plain := make([]string, len(ids))
	for i, id := range ids {
		var err error
		if plain[i], err = r.unpin(argument, id); err != nil {
			return nil, err
		}
		prefix, key, ok := parseNodeID(plain[i])
		if !ok {
			return nil, problem.New(problem.BadInput,
				"%s: %q is not an identifier. Valid identifiers are tool/<slug>, category/<slug>, comparison/<slug>, "+
					"release/<number> and evt_<number>.",
				argument, params.Truncate(id))
		}
		if !slices.Contains(plain[:i], plain[i]) {
			keys[prefix] = append(keys[prefix], key)
		}
	}
	found := map[string]model.Node{}
	for t, node := range r.ComparedTools(existing(keys[model.ToolPrefix], r.Tool)) {
		found[model.ToolPrefix+t.Slug] = node
	}
	for _, c := range r.Comparisons(r.FindComparisons(keys[model.ComparisonPrefix]...)) {
		found[model.ComparisonPrefix+c.Slug] = c
	}
	for _, c := range r.Categories(existing(keys[model.CategoryPrefix], r.Category)) {
		found[model.CategoryPrefix+c.Slug] = c
	}
	numbered := func(key string) *ent.Release {
		number, _ := strconv.Atoi(key)
		return r.Numbered(number)
	}
	for _, release := range r.releases(existing(keys[model.ReleasePrefix], numbered)) {
		found[model.ReleasePrefix+strconv.Itoa(release.Number)] = release
	}
	err := r.addEvents(ctx, keys[journal.IDPrefix], found)
	return mapSlice(plain, func(id string) model.Node { return found[id] }), err
}

// existing returns the objects with the given keys that exist.
func existing[Item any](keys []string, find func(string) *Item) (found []*Item) {
	for _, key := range keys {
		if item := find(key); item != nil {
			found = append(found, item)
		}
	}
	return found
}

// unpin returns an identifier without its release, which must be the one being
// read.
func (r *reader) unpin(argument, id string) (string, error) {
	if err := checkText(argument, id, maxSlugText); err != nil {
		return "", err
	}
	plain, release, isPinned := strings.Cut(id, "@")
	switch {
	case !isPinned || strings.HasPrefix(id, journal.IDPrefix) || !releaseNumber.MatchString(release):
		return id, nil // parseNodeID rejects what it does not know
	case !r.Pinned || release != strconv.Itoa(r.Number()):
		return "", problem.New(problem.BadInput,
			"%s: %q is an object of release %s. "+
				"Add @asOf(release: %[3]s) to the operation, or remove @%[3]s from the identifier.",
			argument, params.Truncate(id), release)
	}
	return plain, nil
}

// parseNodeID splits an identifier without a release into its prefix and what follows.
func parseNodeID(id string) (prefix, key string, ok bool) {
	if _, isEvent := journal.ParseID(id); isEvent {
		return journal.IDPrefix, id, true
	}
	prefix, key, _ = strings.Cut(id, "/")
	prefix += "/"
	switch prefix {
	case model.ToolPrefix, model.CategoryPrefix, model.ComparisonPrefix:
		ok = key != "" && !strings.Contains(key, "@")
	case model.ReleasePrefix:
		ok = releaseNumber.MatchString(key)
	}
	return prefix, key, ok
}

// addEvents adds events up to the release being read.
func (r *reader) addEvents(ctx context.Context, ids []string, found map[string]model.Node) error {
	if r.Info == nil {
		return nil
	}
	numbers := mapSlice(ids, func(id string) int {
		number, _ := journal.ParseID(id)
		return number
	})
	changes, err := r.changesAt(ctx, numbers, selects(ctx, "fields", "before", "after"))
	for _, c := range changes {
		if c.Release <= r.Number() {
			found[c.ID] = c.Change
		}
	}
	return err
}
