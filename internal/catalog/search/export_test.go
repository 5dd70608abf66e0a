package search

// IsSimilar compares words without an index.
var IsSimilar = isSimilar
