package graph

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// Global identifiers are readable: a type, a slash and the slug or number. In an
// operation with @asOf, they also name the release, as in tool/plume@41, so that
// client caches keep releases apart. The identifiers of events never change.
const (
	toolPrefix       = "tool/"
	categoryPrefix   = "category/"
	comparisonPrefix = "comparison/"
	releasePrefix    = "release/"
)

// A tool has the same identifier when it is active and when it is retired.
func toolID(slug string) string       { return toolPrefix + slug }
func categoryID(slug string) string   { return categoryPrefix + slug }
func comparisonID(slug string) string { return comparisonPrefix + slug }
func releaseID(number int) string     { return releasePrefix + strconv.Itoa(number) }

// pin adds the release to an identifier if the operation uses @asOf.
func (r *reader) pin(id string) string {
	if !r.pinned {
		return id
	}
	return id + "@" + strconv.Itoa(r.release.Number())
}

const maxNodes = 100

func (queryResolver) Node(ctx context.Context, id string) (model.Node, error) {
	nodes, err := readerFrom(ctx).readNodes(ctx, "id", []string{id}, selected(ctx))
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

func (queryResolver) Nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxNodes {
		return nil, problem.New(problem.BadInput, "ids must have at most %d identifiers (got %d).", maxNodes, len(ids))
	}
	return readerFrom(ctx).readNodes(ctx, "ids", ids, selected(ctx))
}

// readNodes returns the objects with the given identifiers, or nil for those that
// do not exist. It reads all objects of a type at once.
func (r *reader) readNodes(ctx context.Context, argument string, ids []string, s selection) ([]model.Node, error) {
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
	numbered := func(key string) *ent.Release {
		number, _ := strconv.Atoi(key)
		return r.release.Numbered(number)
	}
	err := cmp.Or(r.readToolNodes(ctx, existing(keys[toolPrefix], r.release.Tool), s, found),
		readInto(ctx, found, r.release.FindComparisons(keys[comparisonPrefix]...), s, r.readComparisons,
			func(c *model.Comparison) string { return comparisonID(c.Slug) }),
		readInto(ctx, found, existing(keys[categoryPrefix], r.release.Category), s, r.readCategories,
			func(c *model.Category) string { return categoryID(c.Slug) }),
		readInto(ctx, found, existing(keys[releasePrefix], numbered), s, r.readReleases,
			func(release *model.Release) string { return releaseID(release.Number) }),
		r.readEvents(ctx, keys[journal.IDPrefix], s, found))
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
	case !r.pinned || release != strconv.Itoa(r.release.Number()):
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
	case toolPrefix, categoryPrefix, comparisonPrefix:
		ok = key != "" && !strings.Contains(key, "@")
	case releasePrefix:
		ok = releaseNumber.MatchString(key)
	}
	return prefix, key, ok
}

// readInto adds objects of one type by their plain identifiers.
func readInto[Item any, Object model.Node](ctx context.Context, found map[string]model.Node, items []Item, s selection,
	read func(context.Context, []Item, selection) ([]Object, error), id func(Object) string,
) error {
	objects, err := read(ctx, items, s)
	for _, object := range objects {
		found[id(object)] = object
	}
	return err
}

func (r *reader) readToolNodes(
	ctx context.Context, wanted []*release.Tool, s selection, found map[string]model.Node,
) error {
	tools, err := r.comparedTools(ctx, wanted, s)
	for t, node := range tools {
		found[toolID(t.Slug)] = node
	}
	return err
}

// readEvents adds events up to the release being read.
func (r *reader) readEvents(ctx context.Context, ids []string, s selection, found map[string]model.Node) error {
	if r.release.Info == nil {
		return nil
	}
	numbers := mapSlice(ids, func(id string) int {
		number, _ := journal.ParseID(id)
		return number
	})
	events, err := r.events(ctx, numbers, s.hasStates())
	if err != nil {
		return err
	}
	events = slices.DeleteFunc(events, func(e *journal.Event) bool { return e.Release > r.release.Number() })
	return readInto(ctx, found, events, s, r.readChanges, func(c *model.Change) string { return c.ID })
}
