package cache

// Table caches values of one kind beside the responses, within the same budget:
// parsed documents, understood requests, counts. Values are dropped when the
// budget needs room, so a table can lose anything at any time.
type Table[V any] struct {
	cache *Cache
	name  string
}

// NewTable returns the table of a name. Tables of one name share their values.
func NewTable[V any](c *Cache, name string) *Table[V] { return &Table[V]{c, name} }

// Get returns a cached value. The edition is Timeless for what no release
// changes.
func (t *Table[V]) Get(e Edition, q Question) (value V, ok bool) {
	found, ok := t.cache.items.GetIfPresent(key{t.name, e, q})
	if !ok {
		return value, false
	}
	return found.value.(V), true
}

// Put caches a value that takes about so many bytes.
func (t *Table[V]) Put(e Edition, q Question, value V, weight int) {
	t.cache.set(key{t.name, e, q}, &item{value: value}, weight)
}
