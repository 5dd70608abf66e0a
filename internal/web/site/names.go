package site

import (
	"context"
	"encoding/json"
	"path"
	"sync"
	"time"

	"palmares/graph"
	"palmares/internal/core/text"
)

// names are those of all that has a page, for who wrote one of them wrong.
// They are read when they are first needed, and again after a release, in one
// flight for all who ask.
type names struct {
	read func(ctx context.Context, operation, list string) ([]suggestion, error)
	mu   sync.Mutex
	kept *catalogNames
	done chan struct{} // closed when those in the making are there; nil while none are
}

// catalogNames are those of a release, in the two lists that are looked through.
type catalogNames struct {
	release     int
	tools       nameList // active and retired: whoever looks for one knows no difference
	comparisons nameList
}

type nameList struct {
	pages []suggestion
	index *text.Index
}

const (
	mostNames = 200_000          // of a list: the rest are not suggested
	namesTime = 30 * time.Second // to read them all
	namesWait = time.Second      // a page without suggestions is better than none
)

// of is the names of a release. While they are read, it is those from before,
// and at first nobody waits long: nil means that they are not there yet.
func (n *names) of(ctx context.Context, release int) *catalogNames {
	n.mu.Lock()
	kept, done := n.kept, n.done
	if done == nil && (kept == nil || kept.release != release) {
		done = make(chan struct{})
		n.done = done
		go n.renew(release, done)
	}
	n.mu.Unlock()
	if kept != nil {
		return kept
	}
	patience := time.NewTimer(namesWait)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept
}

// renew reads them, for all who wait and not just for who asked first.
func (n *names) renew(release int, done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), namesTime)
	defer cancel()
	fresh, err := n.readAll(ctx, release)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil { // else the next who asks tries again
		n.kept = fresh
	}
	n.done = nil
	close(done)
}

func (n *names) readAll(ctx context.Context, release int) (*catalogNames, error) {
	tools, err := n.read(ctx, "toolNames", "/tools/")
	if err != nil {
		return nil, err
	}
	retired, err := n.read(ctx, "retiredNames", "/cimetiere/")
	if err != nil {
		return nil, err
	}
	comparisons, err := n.read(ctx, "comparisonNames", "/comparatifs/")
	if err != nil {
		return nil, err
	}
	return &catalogNames{release, newNameList(append(tools, retired...)), newNameList(comparisons)}, nil
}

func newNameList(pages []suggestion) nameList {
	slugs := make([]string, len(pages))
	for i, page := range pages {
		slugs[i] = path.Base(page.Path)
	}
	return nameList{pages, text.NewIndex(slugs)}
}

// nearest are the pages whose slugs are most like one.
func (l nameList) nearest(slug string) (found []suggestion) {
	for _, at := range l.index.Similar(slug, mostSuggestions) {
		found = append(found, l.pages[at])
	}
	return found
}

// readNames goes through a whole list of the catalog.
func (s *Site) readNames(ctx context.Context, operation, list string) (all []suggestion, err error) {
	for page, pages := 1, 1; page <= pages && len(all) < mostNames; page++ {
		answer := s.Executor.Execute(ctx, graph.Request{Operation: s.operations[operation], Variables: map[string]any{"page": page}})
		if p := answer.Problem(); p != nil {
			return nil, p
		}
		var piece struct {
			Names struct {
				Items []struct{ Slug, Name string }
				Meta  struct{ Pages int }
			}
		}
		if err := json.Unmarshal(answer.Data, &piece); err != nil {
			return nil, err
		}
		for _, item := range piece.Names.Items {
			all = append(all, suggestion{Path: list + item.Slug, Name: item.Name, Catalog: true})
		}
		pages = piece.Names.Meta.Pages
	}
	return all, nil
}
