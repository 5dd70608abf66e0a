package auth

// Plan is what a caller has signed up for.
type Plan string

// The plans there are.
const (
	Anonymous Plan = "anonymous"
	Developer Plan = "developer"
	Pro       Plan = "pro"
)

// Terms are what a plan gives.
type Terms struct {
	Tier       string // as X-RateLimit-Tier names it
	DailyQuota int    // requests in a UTC day; 0 for no bound
	Keys       int
	Streams    int // open at the same time, on one server
	Embeddings bool
	Webhooks   bool
}

var plans = map[Plan]Terms{
	Anonymous: {DailyQuota: 100, Streams: 5},
	Developer: {Tier: "free", DailyQuota: 1_000, Keys: 3, Streams: 20, Embeddings: true},
	Pro:       {Tier: "pro", Keys: 10, Streams: 100, Embeddings: true, Webhooks: true},
}

// Terms of a plan. An unknown one has what anybody has.
func (p Plan) Terms() Terms {
	if terms, known := plans[p]; known {
		return terms
	}
	return plans[Anonymous]
}
