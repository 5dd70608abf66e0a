package auth

// Plan is what an account has signed up for.
type Plan string

// The plans.
const (
	Anonymous Plan = "anonymous"
	Developer Plan = "developer"
	Pro       Plan = "pro"
)

// Terms are what a plan includes.
type Terms struct {
	Name       string // as shown to people; Anonymous has none
	Tier       string // value of X-RateLimit-Tier
	DailyQuota int    // requests per UTC day; 0 means unlimited
	Keys       int
	Streams    int // open at the same time on one server
	Downloads  int // of whole lists, at the same time on one server
	// SavedQueries that have a name at the same time.
	SavedQueries int
	Embeddings   bool
	Webhooks     bool
}

var plans = map[Plan]Terms{
	Anonymous: {DailyQuota: 100, Streams: 5},
	Developer: {Name: "Developer", Tier: "free", DailyQuota: 1_000, Keys: 3, Streams: 20, Downloads: 2, SavedQueries: 5, Embeddings: true},
	Pro:       {Name: "Pro", Tier: "pro", Keys: 10, Streams: 100, Downloads: 2, SavedQueries: 50, Embeddings: true, Webhooks: true},
}

// Terms returns what the plan includes; an unknown plan includes what Anonymous does.
func (p Plan) Terms() Terms {
	if terms, known := plans[p]; known {
		return terms
	}
	return plans[Anonymous]
}
