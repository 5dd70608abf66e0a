package graph

import (
	"context"
	"slices"
	"strconv"

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
		if err := params.CheckSlug(argument, id); err != nil {
			return nil, err
		}
		prefix, key, err := r.ParseID(argument, id)
		if err != nil {
			return nil, err
		}
		plain[i] = prefix + key
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
	for _, release := range r.Releases(existing(keys[model.ReleasePrefix], numbered)) {
		found[model.ReleasePrefix+strconv.Itoa(release.Number)] = release
	}
	err := r.addEvents(ctx, keys[journal.IDPrefix], found)
	return model.Map(plain, func(id string) model.Node { return found[id] }), err
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

// addEvents adds events up to the release being read.
func (r *reader) addEvents(ctx context.Context, keys []string, found map[string]model.Node) error {
	if r.Info == nil {
		return nil
	}
	numbers := model.Map(keys, func(key string) int {
		number, _ := strconv.Atoi(key)
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
