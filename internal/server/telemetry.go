package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"palmares/internal/core/middleware"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/webhook"
	"palmares/internal/ops/metrics"
	"palmares/internal/ops/tracing"
	"palmares/internal/web/status"
)

// telemetry collects metrics and traces. Disabled parts add no overhead.
type telemetry struct {
	metrics *metrics.Metrics // nil if disabled
	traces  *tracing.Tracing // nil if disabled
}

func newTelemetry(cfg Config) telemetry {
	if cfg.MetricsListen == "" {
		return telemetry{nil, cfg.Traces}
	}
	return telemetry{metrics.New(cfg.Version), cfg.Traces}
}

// middleware measures and traces requests.
func (t telemetry) middleware(next http.Handler) http.Handler {
	if t.traces != nil {
		next = t.traces.Middleware(labelOf)(next)
	}
	if t.metrics != nil {
		next = t.metrics.Middleware(next)
	}
	return next
}

// observers returns functions that are called after each request.
func (t telemetry) observers() (all []func(middleware.Observed)) {
	if t.metrics != nil {
		all = append(all, func(o middleware.Observed) { t.metrics.Observe(o, labelOf(o.Request)) })
	}
	if t.traces != nil {
		all = append(all, t.traces.Observe)
	}
	return all
}

// statements returns a hook for SQL statements, or nil.
func (t telemetry) statements() store.StatementHook {
	switch {
	case t.metrics == nil && t.traces == nil:
		return nil
	case t.traces == nil:
		return t.metrics.Statement
	case t.metrics == nil:
		return t.traces.Statement
	}
	return func(ctx context.Context, pool, statement string) func(error) {
		endSpan, endTimer := t.traces.Statement(ctx, pool, statement), t.metrics.Statement(ctx, pool, statement)
		return func(err error) {
			endTimer(err)
			endSpan(err)
		}
	}
}

// operations returns a hook for GraphQL operations, or nil.
func (t telemetry) operations() func(context.Context, string) (context.Context, func(string)) {
	if t.traces == nil {
		return nil
	}
	return t.traces.Operation
}

// watchQuota measures quota checks in Redis. Checks in memory are not worth
// measuring.
func (t telemetry) watchQuota(counts quota.Store) quota.Store {
	if t.metrics != nil {
		counts = quota.Watched{Store: counts, Watch: t.metrics.Quota}
	}
	if t.traces != nil {
		counts = quota.Watched{Store: counts, Watch: t.traces.Quota}
	}
	return counts
}

// addMetrics registers the metrics of all parts of the server.
func (s *Server) addMetrics(m *metrics.Metrics) {
	for name, db := range s.store.Pools() {
		m.AddPool(name, db)
	}
	m.AddCounter("palmares_cache_hits_total", "Responses from the cache.", read(s.engine.cache.Hits.Load))
	m.AddCounter("palmares_cache_misses_total", "Responses that were computed, or waited for another request to compute them.", read(s.engine.cache.Misses.Load))
	m.AddGauge("palmares_cache_bytes", "Size of all cached responses, requests, documents and counts.", read(s.engine.cache.Weight))
	m.AddGauge("palmares_cache_entries", "Approximate number of cached responses, requests, documents and counts.", read(s.engine.cache.Entries))

	redisFailures, fallback := func() int64 { return 0 }, func() bool { return false }
	if redis := s.access.redis; redis != nil {
		redisFailures, fallback = redis.Fallbacks.Load, redis.Unavailable
	}
	m.AddCounter("palmares_quota_redis_failures_total", "Requests that were counted without Redis because it did not respond.", read(redisFailures))
	m.AddGauge("palmares_quota_fallback", "1 while Redis is unavailable and this server counts locally.", readBool(fallback))

	hooks, mail := &s.webhooks.Counts, s.mail
	const attempts = "Webhook delivery attempts: delivered, refused (a status other than 2xx) or unreachable."
	m.AddCounter("palmares_webhook_attempts_total", attempts, read(hooks.Delivered.Load), "outcome", "delivered")
	m.AddCounter("palmares_webhook_attempts_total", attempts, read(hooks.Refused.Load), "outcome", "refused")
	m.AddCounter("palmares_webhook_attempts_total", attempts, read(hooks.Unreachable.Load), "outcome", "unreachable")
	m.AddGauge("palmares_mail_waiting", "Emails that are queued on this server.", read(mail.Pending))
	const emails = "Emails by outcome: sent (accepted by the mail server) or given_up."
	m.AddCounter("palmares_emails_total", emails, read(mail.Sent.Load), "outcome", "sent")
	m.AddCounter("palmares_emails_total", emails, read(mail.Failed.Load), "outcome", "given_up")

	if purger := s.purger; purger != nil {
		const purges = "Requests to purge the edge: accepted, or given_up after a minute."
		m.AddCounter("palmares_edge_purges_total", purges, read(purger.Accepted.Load), "outcome", "accepted")
		m.AddCounter("palmares_edge_purges_total", purges, read(purger.Failed.Load), "outcome", "given_up")
	}

	m.AddGauge("palmares_release_number", "Release being served; 0 before the first.", read(func() int { return s.engine.release.Load().ID }))
	m.AddGauge("palmares_release_age_seconds", "Time since the release being served was imported; 0 before the first.", func() float64 {
		if release := s.engine.release.Load(); release.ID > 0 {
			return time.Since(release.ImportedAt).Seconds()
		}
		return 0
	})
	const builds = "Attempts to write the Parquet and SQLite files of a release: written or failed."
	m.AddCounter("palmares_file_builds_total", builds, read(s.archive.Built.Load), "outcome", "written")
	m.AddCounter("palmares_file_builds_total", builds, read(s.archive.Failed.Load), "outcome", "failed")
	m.AddGauge("palmares_draining", "1 while the server shuts down.", readBool(s.state.draining.Load))
	m.AddGauge("palmares_connections", "Open connections.", read(s.state.connections.Load))
	m.AddGauge("palmares_streams", "Open GraphQL subscriptions.", read(s.graphql.OpenStreams))
	(&samples{Server: s, availability: math.NaN()}).addTo(m)
}

// read converts a number to the type that metrics need.
func read[T int | int64 | uint64](value func() T) func() float64 {
	return func() float64 { return float64(value()) }
}

func readBool(value func() bool) func() float64 {
	return func() float64 {
		if value() {
			return 1
		}
		return 0
	}
}

// serveMetrics serves metrics and profiles until ctx ends. They have their own
// listener because they are for operators only.
func (s *Server) serveMetrics(ctx context.Context, m *metrics.Metrics) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: ReadHeaderTimeout, WriteTimeout: writeTimeout,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	if err := server.Serve(s.metrics); !errors.Is(err, http.ErrServerClosed) {
		s.cfg.Log.Error("serving metrics failed", "cause", err)
	}
}

const (
	// sampleInterval is the maximum age of samples, however often they are
	// scraped.
	sampleInterval = 15 * time.Second
	// availabilityInterval is longer because the query reads many rows.
	availabilityInterval = 5 * time.Minute
	sampleTimeout        = 2 * time.Second
	availabilityDays     = 30 // the period of the 99% uptime target
)

// burnWindows are the periods over which alerts watch the error budget.
var burnWindows = [...]struct {
	name    string
	minutes int
}{{"1h", 60}, {"6h", 6 * 60}, {"3d", 3 * 24 * 60}}

// samples are metrics from the database, which are queried only when they are
// scraped.
type samples struct {
	*Server
	mu             sync.Mutex
	at             time.Time // when the last query ran
	availabilityAt time.Time
	up             bool
	backlog        webhook.Backlog
	down           [len(burnWindows)]int
	notices        int     // emails in the outbox
	availability   float64 // NaN if unknown
}

func (s *samples) addTo(m *metrics.Metrics) {
	gauge := func(name, help string, value func() float64, labels ...string) {
		m.AddGauge(name, help, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refresh()
			return value()
		}, labels...)
	}
	gauge("palmares_database_up", "1 if the database responded to the last check.", readBool(func() bool { return s.up }))
	for _, state := range []string{"active", "paused", "disabled"} {
		gauge("palmares_webhook_endpoints", "Webhook endpoints by state, across all servers.",
			read(func() int { return s.backlog.Endpoints[state] }), "state", state)
	}
	gauge("palmares_mail_stored", "Stored emails that are not sent yet, across all servers.", read(func() int { return s.notices }))
	gauge("palmares_webhook_planned", "Webhook deliveries that will be retried, across all servers.", read(func() int { return s.backlog.Retries }))
	gauge("palmares_webhook_oldest_waiting_seconds", "How long the oldest pending webhook delivery has been overdue; 0 if none is.",
		func() float64 { return s.backlog.OldestDue.Seconds() })
	for i, window := range burnWindows {
		gauge("palmares_unavailable_minutes", "Minutes of a period that were unavailable, across all servers.",
			read(func() int { return s.down[i] }), "window", window.name)
	}
	gauge("palmares_availability_ratio", "Share of available minutes in the last 30 days, across all servers.",
		func() float64 { return s.availability })
}

// refresh queries the database again if the samples are outdated. The caller holds
// the lock. Samples that cannot be queried keep their values.
func (s *samples) refresh() {
	if time.Since(s.at) < sampleInterval {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sampleTimeout)
	defer cancel()
	err := s.store.Ready(ctx)
	if err != nil && (s.up || s.at.IsZero()) {
		s.cfg.Log.Warn("refreshing metrics failed", "cause", err)
	}
	s.at, s.up = time.Now(), err == nil
	if !s.up {
		return
	}
	if notices, err := s.store.Read.Notice.Query().Count(ctx); err != nil {
		s.cfg.Log.Warn("counting stored emails failed", "cause", err)
	} else {
		s.notices = notices
	}
	if backlog, err := s.webhooks.Backlog(ctx); err != nil {
		s.cfg.Log.Warn("counting pending webhook deliveries failed", "cause", err)
	} else {
		s.backlog = backlog
	}
	for i, window := range burnWindows {
		down, err := status.Down(ctx, s.store, time.Now(), window.minutes)
		if err != nil {
			s.cfg.Log.Warn("counting unavailable minutes failed", "cause", err)
			break
		}
		s.down[i] = down
	}
	if time.Since(s.availabilityAt) < availabilityInterval {
		return
	}
	if share, known, err := status.Availability(ctx, s.store, availabilityDays); err != nil {
		s.cfg.Log.Warn("computing the availability failed", "cause", err)
	} else if known {
		s.availability, s.availabilityAt = share, time.Now()
	}
}
