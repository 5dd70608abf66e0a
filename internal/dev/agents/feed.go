package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/text"
	"palmares/internal/dev/testkit"
)

// feed has all editions of the catalog, oldest first. Edition 0 is release 1.
type feed []edition

// edition is what a feed says about the catalog. It is read without the code that
// imports feeds, so that a mistake there is not repeated here.
type edition struct {
	date        string
	labels      map[string]string // of categories
	tools       map[string]tool   // active ones
	retired     map[string]tool
	comparisons map[string]comparison // published ones
}

type tool struct {
	Slug, Name, Domain, Category, ICP, Pricing, Price, Tagline, Reason, Note string
	Score, Verifiability, Obsolescence                                       *float64
	RetiredAt                                                                string `json:"retired_at"`
	Sections                                                                 []struct{ Section, Text string }
	PriceHistory                                                             []struct {
		ChangedAt string `json:"changed_at"`
	} `json:"price_history"`
	record map[string]any
}

type comparison struct {
	Slug, Title, Winner string
	ToolA               string `json:"tool_a"`
	ToolB               string `json:"tool_b"`
	WinnerNote          string `json:"winner_note"`
	Published           *bool
}

func readFeed(t testing.TB) (f feed) {
	all, err := demo.Editions()
	testkit.Check(t, err)
	for _, one := range all {
		e := edition{one.Date, map[string]string{}, map[string]tool{}, map[string]tool{}, map[string]comparison{}}
		for line := range strings.Lines(string(one.Feed)) {
			var head struct{ Type, Slug, Label string }
			testkit.Check(t, json.Unmarshal([]byte(line), &head))
			switch head.Type {
			case "category":
				e.labels[head.Slug] = head.Label
			case "tool", "cimetiere":
				var read tool
				testkit.Check(t, json.Unmarshal([]byte(line), &read))
				testkit.Check(t, json.Unmarshal([]byte(line), &read.record))
				if head.Type == "tool" {
					e.tools[head.Slug] = read
				} else {
					e.retired[head.Slug] = read
				}
			case "comparatif":
				var read comparison
				testkit.Check(t, json.Unmarshal([]byte(line), &read))
				if read.Published == nil || *read.Published {
					e.comparisons[head.Slug] = read
				}
			}
		}
		f = append(f, e)
	}
	return f
}

func (f feed) newest() edition   { return f[len(f)-1] }
func (f feed) previous() edition { return f[len(f)-2] }

// on returns the edition that was current on a day: the first one before all others.
func (f feed) on(day string) edition {
	found := f[0]
	for _, e := range f {
		if e.date <= day {
			found = e
		}
	}
	return found
}

// name returns the name of a tool, active or retired.
func (e edition) name(slug string) string { return cmp.Or(e.tools[slug].Name, e.retired[slug].Name) }

// where returns the active tools that match, highest score first, those without a score
// last, then by slug.
func (e edition) where(matches func(tool) bool) (found []tool) {
	for _, one := range e.tools {
		if matches(one) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b tool) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.Slug, b.Slug)) })
	return found
}

func in(category string) func(tool) bool { return func(t tool) bool { return t.Category == category } }

func score(t tool) float64 {
	if t.Score == nil {
		return -1
	}
	return *t.Score
}

// monthly returns the price per month, if the tool has one.
func (t tool) monthly() (float64, bool) {
	amount, period, _ := strings.Cut(t.Price, " €/")
	value, err := strconv.ParseFloat(strings.Replace(amount, ",", ".", 1), 64)
	switch {
	case err != nil:
	case period == "mois":
		return value, true
	case period == "an":
		return round(value / 12), true
	}
	return 0, false
}

// mentions reports whether a tool's texts have a word that starts with each of some
// words.
func (e edition) mentions(t tool, all ...string) bool {
	texts := t.Name + " " + t.Domain + " " + t.Tagline + " " + e.labels[t.Category] + " " + t.Note
	for _, section := range t.Sections {
		texts += " " + section.Text
	}
	present := wordPattern.FindAllString(text.Fold(texts), -1)
	for _, word := range all {
		if !slices.ContainsFunc(present, func(other string) bool { return strings.HasPrefix(other, word) }) {
			return false
		}
	}
	return true
}

// alternatives returns the tools of the same category that are nearest in score and
// price. A tenth of a euro per month weighs as much as a hundredth of a point.
func (e edition) alternatives(slug string, limit int) (slugs []string) {
	of := e.tools[slug]
	price, priced := of.monthly()
	distance := func(t tool) (lacking bool, far float64) {
		if of.Score != nil {
			if t.Score == nil {
				lacking = true
			} else {
				far += math.Abs(*of.Score - *t.Score)
			}
		}
		if priced {
			if other, has := t.monthly(); has {
				far += math.Abs(price-other) / 10
			} else {
				lacking = true
			}
		}
		return lacking, math.Round(far*1e6) / 1e6
	}
	others := e.where(func(t tool) bool { return t.Category == of.Category && t.Slug != slug })
	slices.SortFunc(others, func(a, b tool) int {
		lackingA, farA := distance(a)
		lackingB, farB := distance(b)
		if lackingA != lackingB {
			return map[bool]int{true: 1, false: -1}[lackingA]
		}
		return cmp.Or(cmp.Compare(farA, farB), cmp.Compare(a.Slug, b.Slug))
	})
	return slugsOf(others[:min(limit, len(others))])
}

// mover is a tool whose value changed.
type mover struct {
	slug   string
	change float64
}

// movers returns the tools whose value changed between two editions, the largest rise
// first.
func movers(from, to edition, value func(tool) (float64, bool)) (found []mover) {
	for slug, after := range to.tools {
		before, both := from.tools[slug]
		old, hadOld := value(before)
		now, hasNow := value(after)
		if both && hadOld && hasNow && now > old {
			found = append(found, mover{slug, round(now - old)})
		}
	}
	slices.SortFunc(found, func(a, b mover) int {
		return cmp.Or(cmp.Compare(b.change, a.change), cmp.Compare(a.slug, b.slug))
	})
	return found
}

// repriced returns the tools whose price or pricing model an edition changed.
func (f feed) repriced(since string) (slugs []string) {
	for i := 1; i < len(f); i++ {
		for slug, after := range f[i].tools {
			before, both := f[i-1].tools[slug]
			if f[i].date >= since && both && (before.Price != after.Price || before.Pricing != after.Pricing) {
				slugs = append(slugs, slug)
			}
		}
	}
	return slugs
}

// byQuarter returns a value for the last edition of each quarter.
func (f feed) byQuarter(value func(edition) string) (values []string) {
	quarter := func(e edition) string {
		month, _ := strconv.Atoi(e.date[5:7]) // dates are valid
		return fmt.Sprint(e.date[:4], " ", (month-1)/3)
	}
	for i, e := range f {
		if i == len(f)-1 || quarter(f[i+1]) != quarter(e) {
			values = append(values, value(e))
		}
	}
	return values
}

func slugsOf(tools []tool) (slugs []string) {
	for _, t := range tools {
		slugs = append(slugs, t.Slug)
	}
	return slugs
}

// mean returns the average of the values that tools have.
func mean(tools []tool, value func(tool) *float64) string {
	sum, n := 0.0, 0.0
	for _, t := range tools {
		if v := value(t); v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return "null"
	}
	return decimal(round(sum / n))
}

// medianPrice returns the median of the monthly prices.
func medianPrice(tools []tool) string {
	var all []float64
	for _, t := range tools {
		if price, has := t.monthly(); has {
			all = append(all, price)
		}
	}
	if len(all) == 0 {
		return "null"
	}
	slices.Sort(all)
	return decimal(round((all[(len(all)-1)/2] + all[len(all)/2]) / 2))
}

// round rounds to two decimals, halves away from zero, also if the sum of decimals is
// a little less than a half.
func round(x float64) float64 { return math.Round(math.Round(x*1e8)/1e6) / 100 }

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
