package site_test

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

var (
	histogramRow = regexp.MustCompile(`<tr><th scope="row">(\d+) to (?:under )?(\d+)</th><td class="number">([\d,]+)</td></tr>`)
	histogramBar = regexp.MustCompile(`<rect x="[\d.]+" y="([\d.]+)" width="30" height="([\d.]+)" rx="2"/><text class="middle" x="[\d.]+" y="[\d.]+" dy="-4">(\d+)</text>`)
	categoryRow  = regexp.MustCompile(`(?s)<tr>\s*<th scope="row"><a href="/tools\?category=([a-z]+)".*?<span class="score">([\d.]+)</span>.*?<rect width="([\d.]+)" height="6"/>`)
)

// The table tells what the bars show, whose heights are in proportion.
func TestHistogramAndItsTable(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		body := says(t, handler, "/", 200)
		var counts, sum, most int
		var told []string
		for _, row := range histogramRow.FindAllStringSubmatch(body, -1) {
			n, _ := strconv.Atoi(row[3])
			counts, sum, most = counts+1, sum+n, max(most, n)
			if n > 0 {
				told = append(told, row[3])
			}
		}
		if counts != 10 || sum != 42 {
			t.Errorf("the table has %d ranges with %d tools", counts, sum)
		}
		bars := histogramBar.FindAllStringSubmatch(body, -1)
		if len(bars) != len(told) {
			t.Fatalf("%d bars show %v", len(bars), told)
		}
		for i, bar := range bars {
			n, _ := strconv.Atoi(bar[3])
			top, _ := strconv.ParseFloat(bar[1], 64)
			high, _ := strconv.ParseFloat(bar[2], 64)
			if bar[3] != told[i] || math.Abs(high-120*float64(n)/float64(most)) > 0.1 || math.Abs(top+high-136) > 0.1 {
				t.Errorf("the bar of %s is %v high, from %v", told[i], high, top)
			}
		}
	})
}

// A bar is as long as its category's mean, of a hundred for ten.
func TestCategoryBars(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		body := says(t, handler, "/categories", 200)
		rows := categoryRow.FindAllStringSubmatch(body, -1)
		if len(rows) != 8 {
			t.Fatalf("%d categories have a bar", len(rows))
		}
		for _, row := range rows {
			mean, _ := strconv.ParseFloat(row[2], 64)
			long, _ := strconv.ParseFloat(row[3], 64)
			if len(row[2]) != len("7.64") || math.Abs(long-10*mean) > 0.05 || long < 10 {
				t.Errorf("%s: %s has a bar of %s", row[1], row[2], row[3])
			}
		}
	})
}

// The price chart has each price at its own step, and begins at nothing.
func TestPriceChart(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		says(t, handler, "/tools/plume", 200, `<span lang="fr">€/mois</span>, from 2025-04-07 to`,
			`<circle cx="0" cy="98.3" r="4"><title lang="fr">2025-04-07: 14,90 €/mois</title></circle>`, `<text x="0" y="88.3" lang="fr">14,90 €</text>`,
			`<text x="337" y="24" lang="fr">24,90 €</text>`,
			`<text class="end" x="640" y="96.1" lang="fr">19,90 €</text>`, // below, beside the way down
			`<text class="end" x="-10" y="194" dy="4">0</text>`)
	})
}
