package simulation

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/usage"
	"palmares/internal/core/cache"
	"palmares/internal/core/ledger"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
)

// quotaServer counts requests in Redis and stores the counts, as a server does.
type quotaServer struct {
	*machine
	redis   *quota.Redis
	gate    *quota.Gate
	written chan struct{} // closed when the ledger has ended

	done     []*quotaRequest  // in the order in which they ended
	known    map[quotaKey]int // the count in the last response while Redis was available
	own      map[quotaKey]int // what it granted since, without what it refunded
	killedAt time.Time
	failedAt time.Time // when its statements started to fail; zero if they work
}

type quotaKey struct {
	account int
	day     quota.Day
}

// quotaDay is what is certain about an account's day.
type quotaDay struct {
	granted  int  // and not refunded
	total    int  // granted, even if it was refunded
	unknown  int  // requests that a killed server may have counted
	inexact  bool // Redis was unavailable
	refused  int
	minUsage int // how much less than granted may be stored, because a server was killed
	maxUsage int // how much more
}

type quotaRequest struct {
	server      *quotaServer
	account     int
	unchanged   bool          // the response is a 304, which is refunded
	start, work time.Duration // until it starts, and what the response takes

	key    quotaKey
	ended  time.Time
	status int
	left   string // X-RateLimit-Remaining
}

type quotaWorld struct {
	*world
	store    *store.Store
	redis    *fakeRedis
	faulty   bool // Redis has a fault
	accounts []*ent.Account
	limits   map[int]int // by account
	servers  []*quotaServer
	days     map[quotaKey]*quotaDay
	started  int
}

// simulateQuotas checks that all servers together grant the limit of each day while
// Redis is available, that each server alone does so while it is not, that no refund
// is lost, and that every count is stored once.
func simulateQuotas(base *world) {
	w := &quotaWorld{world: base, store: base.openStore(), redis: newFakeRedis(), limits: map[int]int{}, days: map[quotaKey]*quotaDay{}}
	for i := range 2 {
		account, err := auth.NewAccounts(w.store).Create(context.Background(), fmt.Sprintf("reader%d@example.com", i), auth.Developer)
		w.check(err)
		w.accounts, w.limits[account.ID] = append(w.accounts, account), 10+w.IntN(40)
	}
	w.begin()
	midnight := quota.DayOf(time.Now()).End()
	for w.left() > 0 {
		// Servers run for some seconds at a time, so that an hour takes milliseconds.
		pause := min(w.upTo(40*time.Minute), w.left())
		if before := time.Until(midnight) - w.upTo(4*time.Second); before > 0 && before < pause {
			pause = before
		}
		time.Sleep(pause)
		w.phase()
	}
	w.checkUsage()
}

func (w *quotaWorld) phase() {
	for i := range 1 + w.IntN(3) {
		w.startServer(time.Duration(i-1) * w.upTo(40*time.Millisecond))
	}
	time.Sleep(50 * time.Millisecond) // connects
	for range 3 + w.IntN(6) {
		w.changeFaults()
		w.burst()
		time.Sleep(w.upTo(2 * time.Second))
	}
	for len(w.servers) > 0 {
		w.stopServer(0, w.oneIn(3))
	}
	w.redis.recover()
	w.faulty = false
}

func (w *quotaWorld) startServer(skew time.Duration) {
	w.started++
	s := &quotaServer{machine: newMachine(fmt.Sprintf("server %d", w.started)), written: make(chan struct{}),
		known: map[quotaKey]int{}, own: map[quotaKey]int{}}
	now := func() time.Time { return time.Now().Add(skew) }
	counter := quota.NewCounter()
	counts := ledger.New(w.store, counter, false, discard)
	w.check(counts.Load(s, quota.DayOf(now())))
	var err error
	s.redis, err = quota.NewRedis("redis://fake", counter, discard, w.redis.connect(s.machine))
	w.check(err)
	s.gate = &quota.Gate{Store: s.redis, Now: now, Caller: func(r *http.Request) quota.Caller {
		account := r.Context().Value(requestKey{}).(*quotaRequest).account
		return quota.Caller{Subject: quota.Account(account), Limit: w.limits[account], Tier: "free"}
	}, Record: func(r *http.Request, day quota.Day, n int) {
		account := r.Context().Value(requestKey{}).(*quotaRequest).account
		counts.Add(ledger.Call{Day: day, Subject: quota.Account(account), Key: s.name, Endpoint: "/"}, n)
	}}
	go func() {
		defer close(s.written)
		counts.Run(s)
	}()
	w.servers = append(w.servers, s)
	w.planned("%s starts with its clock off by %s", s.name, skew)
}

// stopServer stops a server or kills it. A killed server loses what it has not
// written.
func (w *quotaWorld) stopServer(i int, kill bool) {
	s := w.servers[i]
	w.servers = slices.Delete(w.servers, i, i+1)
	w.planned("%s stops, killed: %t", s.name, kill || s.dead.Load())
	if kill && !s.dead.Load() {
		w.kill(s)
	}
	if s.dead.Load() {
		w.loseUnwritten(s)
	}
	s.storeDown.Store(false) // a server tries to write once when it stops
	s.loseCommits.Store(0)
	s.cancel()
	<-s.written
	w.redis.disconnect(s.machine)
	time.Sleep(100 * time.Millisecond) // its probe ends
	w.check(s.redis.Close())
}

func (w *quotaWorld) kill(s *quotaServer) {
	s.killedAt = time.Now()
	w.redis.disconnect(s.machine)
	s.kill()
}

// loseUnwritten allows for the loss of what a killed server counted since it last
// wrote: within half a second, or since its statements have failed.
func (w *quotaWorld) loseUnwritten(s *quotaServer) {
	cutoff := s.killedAt
	if !s.failedAt.IsZero() && s.failedAt.Before(cutoff) {
		cutoff = s.failedAt
	}
	for _, r := range s.done {
		day := w.days[r.key]
		switch {
		case r.ended.Before(cutoff.Add(-500 * time.Millisecond)):
		case r.status == http.StatusNotModified:
			day.maxUsage++
		case r.status == http.StatusOK:
			day.minUsage++
		}
	}
}

// changeFaults starts and ends faults.
func (w *quotaWorld) changeFaults() {
	switch faulty := w.IntN(8); {
	case w.seed%3 == 0: // Redis always works
	case faulty == 0:
		empty := w.oneIn(2)
		w.planned("Redis stops, and loses its data: %t", empty)
		w.redis.stop(empty)
		w.faulty = true
	case faulty == 1:
		w.planned("Redis freezes")
		w.redis.respond(redisLatency, true)
		w.faulty = true
	case faulty == 2:
		latency := 20*time.Millisecond + w.upTo(60*time.Millisecond)
		w.planned("Redis takes %s", latency)
		w.redis.respond(latency, false)
		w.faulty = true
	case faulty < 5:
		w.planned("Redis works")
		w.redis.recover()
		time.Sleep(2 * time.Second) // reconnects and catches up
		w.faulty = false
	}
	for _, s := range w.servers {
		switch w.IntN(6) {
		case 0:
			w.planned("statements of %s fail", s.name)
			s.storeDown.Store(true)
			if s.failedAt.IsZero() {
				s.failedAt = time.Now()
			}
		case 1:
			lost := int32(1 + w.IntN(2))
			w.planned("%s does not learn of %d commits", s.name, lost)
			s.loseCommits.Store(lost)
			if s.failedAt.IsZero() {
				s.failedAt = time.Now()
			}
		case 2, 3:
			w.planned("statements of %s work", s.name)
			s.storeDown.Store(false)
			s.loseCommits.Store(0)
			time.Sleep(time.Second) // writes what is pending
			s.failedAt = time.Time{}
		}
	}
	if len(w.servers) > 1 && w.oneIn(8) {
		w.stopServer(w.IntN(len(w.servers)), w.oneIn(2))
	}
	if len(w.servers) == 0 || len(w.servers) < 3 && w.oneIn(6) {
		w.startServer(0)
		time.Sleep(50 * time.Millisecond)
	}
}

type requestKey struct{}

// burst sends requests at almost the same time, and compares what was granted.
func (w *quotaWorld) burst() {
	if w.faulty { // counts may also be inexact if no request is sent
		for _, day := range w.days {
			day.inexact = true
		}
	}
	requests := make([]*quotaRequest, 1+w.IntN(12))
	for i := range requests {
		requests[i] = &quotaRequest{server: w.servers[w.IntN(len(w.servers))], account: w.accounts[w.IntN(len(w.accounts))].ID, unchanged: w.oneIn(3),
			start: w.upTo(100 * time.Millisecond), work: w.upTo(time.Second) / time.Duration(1+w.IntN(20))}
	}
	var killed time.Time
	if len(w.servers) > 1 && w.oneIn(10) {
		s, after := w.servers[w.IntN(len(w.servers))], w.upTo(200*time.Millisecond)
		killed = time.Now().Add(after)
		time.AfterFunc(after, func() { w.kill(s) })
		w.planned("%s is killed in %s", s.name, after)
	}
	w.planned("%d requests", len(requests))
	var sent sync.WaitGroup
	for _, r := range requests {
		sent.Go(r.send)
	}
	sent.Wait()
	slices.SortStableFunc(requests, func(a, b *quotaRequest) int { return a.ended.Compare(b.ended) })
	byKey := map[quotaKey][]*quotaRequest{}
	for _, r := range requests {
		r.server.done = append(r.server.done, r)
		byKey[r.key] = append(byKey[r.key], r)
	}
	for _, key := range slices.SortedFunc(maps.Keys(byKey), func(a, b quotaKey) int { return a.account*1000 + int(a.day) - b.account*1000 - int(b.day) }) {
		w.checkDay(key, byKey[key])
	}
	time.Sleep(time.Until(killed) + time.Millisecond)
	for i := len(w.servers) - 1; i >= 0; i-- {
		if w.servers[i].dead.Load() {
			w.stopServer(i, true)
		}
	}
}

func (r *quotaRequest) send() {
	time.Sleep(r.start)
	r.key = quotaKey{r.account, quota.Day(r.server.gate.Now().Unix() / (24 * 60 * 60))}
	request := httptest.NewRequest(http.MethodGet, "/api/v1/tools", nil)
	request = request.WithContext(context.WithValue(r.server, requestKey{}, r))
	if r.unchanged {
		request.Header.Set("If-None-Match", `"tag"`)
	}
	response := httptest.NewRecorder()
	r.server.gate.Count(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		time.Sleep(r.work)
		switch {
		case cache.CachedOnly(in.Context()):
			out.WriteHeader(http.StatusNotFound)
		case r.unchanged:
			out.WriteHeader(http.StatusNotModified)
		default:
			out.WriteHeader(http.StatusOK)
		}
	})).ServeHTTP(response, request)
	r.ended, r.status, r.left = time.Now(), response.Code, response.Header().Get("X-RateLimit-Remaining")
	if r.server.dead.Load() {
		r.status = 0 // nobody received the response
	}
}

// checkDay compares the responses of a burst with the counts of a day.
func (w *quotaWorld) checkDay(key quotaKey, requests []*quotaRequest) {
	day, limit := w.days[key], w.limits[key.account]
	if day == nil {
		day = &quotaDay{inexact: w.faulty}
		w.days[key] = day
	}
	statuses := map[int]int{}
	servers := map[*quotaServer]bool{}
	for _, r := range requests {
		w.happened("account %d, %s: %d after %s", r.account, r.server.name, r.status, r.start+r.work)
		statuses[r.status]++
		servers[r.server] = true
		if r.status == http.StatusOK {
			r.server.own[key]++
		}
	}
	ok, unchanged, refused := statuses[http.StatusOK], statuses[http.StatusNotModified], statuses[http.StatusTooManyRequests]
	day.granted += ok
	day.total += ok + unchanged
	day.unknown += statuses[0]
	w.happened("account %d on %s: %d of %d granted before, then %v, inexact %t", key.account, key.day, day.granted-ok, limit, statuses, day.inexact)

	certain := day.granted + unchanged + day.unknown
	if day.inexact { // servers may not know of the refunds of others
		day.refused += refused
		certain = day.total + day.unknown + day.refused
	}
	if refused > 0 && certain < limit {
		w.violated("account %d was refused %d requests on %s after %d of %d", key.account, refused, key.day, certain, limit)
	}
	if !day.inexact && day.granted > limit {
		w.violated("account %d was granted %d of %d requests on %s", key.account, day.granted, limit, key.day)
	}
	for s := range servers {
		if s.known[key]+s.own[key] > limit {
			w.violated("%s granted account %d %d requests on %s after %d of %d", s.name, key.account, s.own[key], key.day, s.known[key], limit)
		}
		if day.inexact || s.dead.Load() {
			continue
		}
		count := s.redis.Count(s, quota.Account(key.account), key.day)
		if count < day.granted || count > day.granted+day.unknown {
			w.violated("account %d: got count %d on %s, want %d", key.account, count, key.day, day.granted)
		}
		s.known[key], s.own[key] = count, 0
	}
}

// checkUsage compares what is stored with what was granted.
func (w *quotaWorld) checkUsage() {
	for key, day := range w.days {
		rows, err := w.store.Read.Usage.Query().Where(usage.Subject(int64(quota.Account(key.account))), usage.Day(key.day.String())).All(context.Background())
		w.check(err)
		n := 0
		for _, row := range rows {
			n += row.Requests
		}
		if least, most := day.granted-day.minUsage, day.granted+day.maxUsage+day.unknown; n < least || n > most {
			w.violated("account %d: got a usage of %d on %s, want %d to %d", key.account, n, key.day, least, most)
		}
	}
}
