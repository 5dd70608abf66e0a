package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"palmares/internal/core/quota"
)

// counts are how many requests of the key were counted, by those who count.
type counts struct{ usage, redis int }

// accountID is that of the only account.
const accountID = 1

// countsNow reads them. Midnight does not matter: Redis keeps a day more.
func (s *scene) countsNow(ctx context.Context) (c counts, err error) {
	if c.usage, err = s.usage(ctx); err != nil || s.redis == nil {
		return c, err
	}
	options, err := redis.ParseURL(s.redis.URL)
	if err != nil {
		return c, err
	}
	client := redis.NewClient(options)
	defer client.Close()
	keys, err := client.Keys(ctx, fmt.Sprintf("palmares:quota:*:%x", uint64(quota.Account(accountID)))).Result()
	if err != nil {
		return c, err
	}
	for _, key := range keys {
		kept, err := client.Get(ctx, key).Result() // count:birth
		if err != nil {
			return c, err
		}
		count, _, _ := strings.Cut(kept, ":")
		n, err := strconv.Atoi(count)
		if err != nil {
			return c, err
		}
		c.redis += n
	}
	return c, nil
}

// countsSince waits until counts have grown as much as they should, or no more.
func (s *scene) countsSince(ctx context.Context, before counts, answered int) (grown counts, err error) {
	for deadline := time.Now().Add(4 * time.Second); ; time.Sleep(250 * time.Millisecond) {
		now, err := s.countsNow(ctx)
		if err != nil {
			return counts{}, err
		}
		grown = counts{now.usage - before.usage, now.redis - before.redis}
		if grown.usage >= answered && (s.redis == nil || grown.redis >= answered) || time.Now().After(deadline) {
			return grown, nil
		}
	}
}

const daily = 100 // requests of an address

// limit asks more often than an address may, all servers at once, and returns
// how often it was answered: counting together again, they agree. It tries
// again, since a machine that is too busy for Redis to answer within 45 ms has
// them count alone; where they did so for good, they would each time.
func (s *scene) limit(ctx context.Context) (granted int) {
	for range 3 {
		if granted = s.spend(ctx); granted == daily {
			return granted
		}
		time.Sleep(time.Second)
	}
	return granted
}

func (s *scene) spend(ctx context.Context) (granted int) {
	const asked, each = 120, 10
	from := addressOf(1<<21 + numbers.Add(1))
	var mu sync.Mutex
	var all sync.WaitGroup
	for range asked / each {
		all.Go(func() {
			for range each {
				if code := s.statusFor(ctx, from); code == http.StatusOK {
					mu.Lock()
					granted++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return granted
}

func (s *scene) statusFor(ctx context.Context, from string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/api/v1/stats", nil)
	if err != nil {
		return 0
	}
	r.Header.Set("X-Forwarded-For", from)
	response, err := aside.Do(r)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// keyed are the requests with a key that were answered, which are counted,
// and those that may have been counted once more: nobody answered them, or a
// server did not after it was asked.
func keyed(samples []*sample) (answered, unsure int) {
	for _, s := range samples {
		if !s.question.keyed {
			continue
		}
		if s.status > 0 && s.status != http.StatusBadGateway && s.status != http.StatusGatewayTimeout { // which nginx says by itself
			answered++
		} else {
			unsure++
		}
		unsure += s.tries - 1
	}
	return answered, unsure
}

// killing is when a server was killed.
type killing struct {
	server string
	at     time.Time
}

// writtenWithin is how soon counts are written down, by a machine with time for
// it.
const writtenWithin = 500 * time.Millisecond

// forgets is how many requests a server that was killed had answered and may
// not have written down. A machine that is slow to answer is as slow to write.
func (k killing) forgets(o *outcome) (n int) {
	since := k.at.Add(-writtenWithin - o.cached.p99)
	for _, s := range o.samples {
		if answered := s.at.Add(s.took); s.question.keyed && s.server == k.server && answered.After(since) && !answered.After(k.at.Add(o.cached.p99)) {
			n++
		}
	}
	return n
}
