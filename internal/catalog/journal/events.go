package journal

// The types of events, as readers know them. What they are not told of, such
// as a tool's tier, makes none.
const (
	EventCatalogPublished    = "catalog.published" // once for each release, after its others
	EventToolCreated         = "tool.created"
	EventToolUpdated         = "tool.updated"
	EventToolRetired         = "tool.retired"
	EventToolRemoved         = "tool.removed"
	EventPriceChanged        = "price.changed"
	EventComparisonPublished = "comparatif.published"
	EventComparisonUpdated   = "comparatif.updated"
	EventComparisonRemoved   = "comparatif.removed" // or no longer published
	EventEmbeddingsChanged   = "embeddings.changed" // what to vectorise again
)

// Events are all types there are.
var Events = []string{
	EventCatalogPublished, EventToolCreated, EventToolUpdated, EventToolRetired, EventToolRemoved, EventPriceChanged,
	EventComparisonPublished, EventComparisonUpdated, EventComparisonRemoved, EventEmbeddingsChanged,
}
