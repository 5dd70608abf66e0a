package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"palmares/internal/catalog/feed"
)

// An edition is a whole catalog that says on every line which one it is: an
// answer that holds two of them is a mix of two releases.

const (
	editionTools       = 30
	editionComparisons = 10
)

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func editionDate(n int) string { return firstDay.AddDate(0, 0, n).Format(time.DateOnly) }

// editionScore is every tool's, and so their mean.
func editionScore(n int) float64 { return float64(10+n%80) / 10 }

// writeEdition makes the feed of an edition.
func writeEdition(dir string, n int) (path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("edition-%d.ndjson", n))
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	mark, score := fmt.Sprintf("édition %d.", n), editionScore(n)
	out := feed.NewWriter(file, editionDate(n))
	out.Write(&feed.Category{Slug: "code", Label: "Code, " + mark})
	slug := func(i int) string { return fmt.Sprintf("outil-%d", i) }
	for i := range editionTools {
		out.Write(&feed.Tool{
			Slug: slug(i), Name: fmt.Sprintf("Outil %d", i), Domain: slug(i) + ".example", Category: "code",
			ICP: "mixte", Pricing: "payant", Price: fmt.Sprintf("%d €/mois", 10+n), Score: &score,
			Tagline: "Outil, " + mark, CanonicalURL: "https://palmares.example/" + slug(i), AlternativesURL: "https://palmares.example/alternatives/" + slug(i),
			UpdatedAt: editionDate(n), Tier: 3,
		})
	}
	for i := range editionComparisons {
		out.Write(&feed.Comparison{
			Slug: fmt.Sprintf("duel-%d", i), Title: "Duel, " + mark, ToolA: slug(i), ToolB: slug(i + 1), Winner: slug(i),
			WinnerNote: "Duel, " + mark, Published: true, UpdatedAt: editionDate(n), CanonicalURL: fmt.Sprintf("https://palmares.example/duel-%d", i),
		})
	}
	return path, out.Flush()
}

var (
	marks = regexp.MustCompile(`édition ([0-9]+)\.`)
	dates = regexp.MustCompile(`"(?:updated_at|updatedAt)": ?"([0-9-]{10})`)
	means = regexp.MustCompile(`"(?:tools_avg_score|toolsAvgScore)": ?([0-9.]+)`)
)

// editionOf is the edition that an answer is of; -1 for none, and an error
// where its parts are of several. The header is X-Service-Updated-At.
func editionOf(header string, body []byte) (int, error) {
	edition := -1
	claim := func(n int) error {
		if edition >= 0 && n != edition {
			return fmt.Errorf("an answer is of editions %d and %d", edition, n)
		}
		edition = n
		return nil
	}
	if header != "" {
		if err := claim(editionOn(header)); err != nil {
			return edition, err
		}
	}
	for _, found := range marks.FindAllSubmatch(body, -1) {
		n, _ := strconv.Atoi(string(found[1]))
		if err := claim(n); err != nil {
			return edition, err
		}
	}
	for _, found := range dates.FindAllSubmatch(body, -1) {
		if err := claim(editionOn(string(found[1]))); err != nil {
			return edition, err
		}
	}
	for _, found := range means.FindAllSubmatch(body, -1) {
		if mean, _ := strconv.ParseFloat(string(found[1]), 64); edition >= 0 && mean != editionScore(edition) {
			return edition, fmt.Errorf("an answer of edition %d has a mean of %v", edition, mean)
		}
	}
	return edition, nil
}

func editionOn(date string) int {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return -1
	}
	return int(day.Sub(firstDay) / (24 * time.Hour))
}
