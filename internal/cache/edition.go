package cache

// edition is a release as the cache counts them. Where a backup is restored,
// releases begin anew, and editions go on: what is still worked out from before
// cannot be taken for newer.
type edition int64

const lifeBits = 32

// of is a release in the same life.
func (e edition) of(release int) edition { return e>>lifeBits<<lifeBits | edition(release) }

// anew is a release in the next one.
func (e edition) anew(release int) edition { return (e>>lifeBits+1)<<lifeBits | edition(release) }

func (e edition) release() int { return int(int32(e)) }

// newest is what is served.
func (c *Cache) newest() edition { return edition(c.served.Load()) }

// publish makes older editions unreachable. One that is not newer changes
// nothing: somebody was slow.
func (c *Cache) publish(e edition) {
	for {
		now := c.newest()
		if e <= now || c.served.CompareAndSwap(int64(now), int64(e)) {
			return
		}
	}
}

// Newest is the release whose answers are served.
func (c *Cache) Newest() int { return c.newest().release() }

// Publish serves a release, unless it is older than what is served.
func (c *Cache) Publish(release int) { c.publish(c.newest().of(release)) }

// Restart forgets everything, where release numbers begin anew: a backup was
// restored.
func (c *Cache) Restart(release int) {
	for {
		now := c.newest()
		if c.served.CompareAndSwap(int64(now), int64(now.anew(release))) {
			break
		}
	}
	c.entries.InvalidateAll()
}
