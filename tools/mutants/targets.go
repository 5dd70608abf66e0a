package main

import "regexp"

// target is a set of rules with the tests that must notice every change of them.
type target struct {
	name   string
	files  []string
	only   *regexp.Regexp // the functions that are mutated, or nil for all
	suites []suite
}

// suite selects tests of a package by their names.
type suite struct{ folder, run string }

// skipped are tests that need other programs, and those that measure memory or time, which
// the code that selects mutants changes.
var skipped = regexp.MustCompile(`With(Redis|Nginx|Node|LibreOffice|Chromium|Git|Varnish|ManyRequests)|Alloc|Memory|Cheap|Concurren|Burst|UnderLoad`)

var targets = []target{
	{
		name:   "quota",
		files:  []string{"internal/core/quota/quota.go", "internal/core/quota/gate.go", "internal/core/client/client.go", "internal/core/limiter/rate.go", "internal/core/limiter/slots.go"},
		suites: []suite{{"internal/core/quota", "."}, {"internal/core/client", "."}, {"internal/core/limiter", "."}, {"internal/server", "^(TestKeysAndQuotas|TestNobodyPaysForLittle|TestPathsFollowTheirPolicy)$"}},
	},
	{
		name:   "cost",
		files:  []string{"graph/document/cost.go", "graph/document/limits.go"},
		suites: []suite{{"graph", "^(TestCost|TestHostile|TestNull)"}, {"graph/document", "^(TestCalculate|TestSizes|TestNullArguments)$"}},
	},
	{
		name:   "sync tokens",
		files:  []string{"graph/sync.go", "internal/catalog/release/sync.go"},
		suites: []suite{{"internal/catalog/release", "^(FuzzSyncToken|TestTokenOfALaterRelease)$"}, {"rest", "^(TestSync|TestUnknownValues$)"}, {"graph", "^TestHistoryIsLoadedLast$"}},
	},
	{
		name:   "cache keys",
		files:  []string{"internal/core/cache/entry.go", "internal/core/edge/edge.go"},
		only:   regexp.MustCompile("^(sign|etag|AnyTag|matches|Release|Tool|Category|IsSlug|Header|Middleware|WriteHeader|setKeys)$"),
		suites: []suite{{"internal/core/cache", "Tag|Encoding|Bodies|NotModified|Tables|Execution|Fuzz"}, {"internal/core/edge", "."}},
	},
	{
		name:   "prices",
		files:  []string{"internal/catalog/pricing/pricing.go", "internal/catalog/publish/prices.go"},
		suites: []suite{{"internal/catalog/pricing", "."}, {"internal/catalog/publish", "Price|Retirement|OneLine"}},
	},
	{
		name:   "plans",
		files:  []string{"auth/plan.go", "internal/account/billing/refresh.go"},
		only:   regexp.MustCompile("^(Live|paid|PlanOf|stateOf|unixTime|Terms)$"),
		suites: []suite{{"internal/account/billing", "^(TestPlan|TestStateOf)"}},
	},
	{
		name:  "feed rules",
		files: []string{"internal/catalog/record/rules.go", "internal/catalog/record/fields.go", "internal/catalog/feed/read.go"},
		only: regexp.MustCompile("^(newRule|textRule|oneOf|numberRule|orNull|objectRule|listRule|[cC]heck.*|isBlank|kindName|Quote|newTable|newField|columnField|NewDecoder|" +
			"[rR]ead.*|suggestion|newLineReader|next|scan|invalidJSON)$"),
		suites: []suite{{"internal/catalog/record", "."}, {"internal/catalog/publish", "^(TestDerivedColumns|TestRe)"}, {"internal/catalog/feed", "^(TestValidFeeds|TestRules|TestAllowed|TestNotAFeed|TestCompressed|TestAtMost|TestLongestLine|TestRe|TestFailingDisk|FuzzRead)"}},
	},
	{
		name:  "OAuth tokens",
		files: []string{"auth/grant.go", "auth/key.go", "internal/account/oauth/token.go", "internal/account/oauth/client.go"},
		only: regexp.MustCompile("^(CreateGrant|ExchangeCode|RefreshTokens|replaceTokens|equal|RevokeTokens|ParseKey|parse.*|tokenText|checksum|readText|matches|Hash|" +
			"serve.*|expired|readForm|writeJSON|sign.*|client|registeredClient|validRedirects|isLoopback|allows)$"),
		suites: []suite{{"auth", "Grant|Token|Key|Authorization"}, {"internal/account/oauth", "."}},
	},
}
