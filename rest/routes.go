package rest

import "slices"

// Every path there is. To add one, add a row, and its operation in queries/.
var routes = []route{
	{path: "/api/v1/tools", query: "tools",
		summary:    "Tools",
		details:    "Active tools, with pagination. Retired ones are in `cimetiere`.",
		parameters: slices.Concat(paging, []parameter{scoreMin, obsolescenceMax, sort})},
	{path: "/api/v1/tools/{slug}", query: "tool",
		summary:    "One tool",
		details:    "All that the list tells of a tool. A retired tool is not found, and the error says so.",
		parameters: []parameter{slug}, sample: aTool, missing: noTool},
	{path: "/api/v1/comparatifs", query: "comparatifs",
		summary:    "Published comparisons, newest first",
		details:    "Comparisons that are published, with pagination. `category` keeps those with either tool in it.",
		parameters: paging},
	{path: "/api/v1/comparatifs/{slug}", query: "comparatif",
		summary:    "One comparison, with the scores of both tools",
		details:    "A comparison with the scores of both tools, and why the winner wins. Either tool may be retired.",
		parameters: []parameter{slug}, sample: aComparison, missing: noComparison},
	{path: "/api/v1/pricing", query: "prices",
		summary:    "Current prices in euros, by the tools' names",
		details:    "The price of every active tool, with pagination.",
		parameters: paging},
	{path: "/api/v1/pricing/{slug}", query: "price",
		summary:    "One tool's price and its history",
		details:    "The price today, and every change of it that was seen, newest first.",
		parameters: []parameter{slug}, sample: aPriceStory, missing: noTool},
	{path: "/api/v1/cimetiere", query: "retired",
		summary:    "Retired tools, latest retirement first",
		details:    "What became of tools that are gone, with pagination. `category` keeps those that were in it.",
		parameters: slices.Concat(paging, []parameter{reason})},
	{path: "/api/v1/categories", query: "categories",
		summary: "Every category, by slug",
		details: "Also those without a tool, whose mean is 0."},
	{path: "/api/v1/stats", query: "stats",
		summary: "Global statistics",
		details: "Counts and means over the whole catalog."},
	{path: "/api/embeddings/{slug}", query: "embeddings",
		summary:    "One tool's review as text chunks for retrieval",
		details:    "Pre-segmented text to vectorise yourself. `hash` changes when any chunk does. Only the top 300 tools have a document.",
		parameters: []parameter{slug}, sample: aDocument, missing: noDocument, keyed: true},
}

// route is one path: what it takes, the operation that answers it, and what an
// empty result means.
type route struct {
	path       string
	query      string // a file in queries/, and the operation's name
	summary    string
	details    string
	parameters []parameter
	sample     string // what its slug is of, to try it with
	missing    reasonWhy
	keyed      bool // needs an API key
}

// parameter is an argument of a path, and the operation's variable of the same
// name, whose type tells how it is written.
type parameter struct {
	name        string
	description string
	least, most int      // of an integer
	values      []string // fewer than the variable's type allows
	inPath      bool
}

var (
	slug = parameter{name: "slug", description: "The identifier.", inPath: true}

	paging = []parameter{
		{name: "page", description: "The page's number. Past the last page the list is empty.", least: 1, most: 1_000_000},
		{name: "limit", description: "Items on a page.", least: 1, most: 200},
		{name: "category", description: "Only what belongs to this category, by slug. An unknown one matches nothing."},
	}

	scoreMin        = parameter{name: "score_min", description: "Only tools with at least this score; drops tools without one."}
	obsolescenceMax = parameter{name: "obsolescence_max", description: "Only tools with at most this obsolescence, from 0 (current) to 10 (obsolete); drops tools without one."}
	sort            = parameter{name: "sort", description: "The order. Tools without a score come last in both score orders; ties go by slug.",
		values: []string{"score_desc", "score_asc", "name_asc", "name_desc"}}
	reason = parameter{name: "reason", description: "Only tools that were retired for this reason."}
)
