package cache

// Edition is a release as the cache numbers them. Release numbers start again
// when a backup is restored, and editions do not: a response that was still
// executing at that time cannot be mistaken for a newer one.
type Edition int64

// Timeless is the edition of what no release changes.
const Timeless Edition = 0

const epochBits = 32

// Of is the edition of a release in the same epoch.
func (e Edition) Of(release int) Edition { return e>>epochBits<<epochBits | Edition(release) }

// next is the edition of a release in the next epoch.
func (e Edition) next(release int) Edition { return (e>>epochBits+1)<<epochBits | Edition(release) }

func (e Edition) release() int { return int(int32(e)) }

// Edition is the newest edition, which is the one that is served.
func (c *Cache) Edition() Edition { return Edition(c.served.Load()) }

// publish makes older editions unreachable. One that is not newer changes
// nothing: its reader was slow.
func (c *Cache) publish(e Edition) {
	for {
		now := c.Edition()
		if e <= now || c.served.CompareAndSwap(int64(now), int64(e)) {
			return
		}
	}
}

// Newest is the release whose responses are served.
func (c *Cache) Newest() int { return c.Edition().release() }

// Publish serves a release, unless it is older than the one that is served.
func (c *Cache) Publish(release int) { c.publish(c.Edition().Of(release)) }

// Restart drops everything, where release numbers start again: a backup was
// restored.
func (c *Cache) Restart(release int) {
	for {
		now := c.Edition()
		if c.served.CompareAndSwap(int64(now), int64(now.next(release))) {
			break
		}
	}
	c.items.InvalidateAll()
}
