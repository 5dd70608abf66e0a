package feed

// What readers notice of a change: the REST interface does not show all of a
// record. A tier alone, for example, is not seen there.

func sameTool(a, b *Tool) bool {
	return a.Name == b.Name && a.Domain == b.Domain && a.Category == b.Category && a.ICP == b.ICP &&
		a.Pricing == b.Pricing && a.Price == b.Price && equal(a.Score, b.Score) && equal(a.Verifiability, b.Verifiability) &&
		a.Tagline == b.Tagline && a.CanonicalURL == b.CanonicalURL && equal(a.AvisURL, b.AvisURL) &&
		a.AlternativesURL == b.AlternativesURL && a.UpdatedAt == b.UpdatedAt
}

func sameRetired(a, b *Retired) bool {
	return a.Name == b.Name && a.Reason == b.Reason && a.RetiredAt == b.RetiredAt && a.Note == b.Note
}

func sameComparison(a, b *toldComparison) bool {
	return a.Title == b.Title && a.WinnerName == b.WinnerName && a.UpdatedAt == b.UpdatedAt && a.CanonicalURL == b.CanonicalURL
}
