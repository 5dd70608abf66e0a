package search

// IsSimilar is the reference implementation of similar words.
var IsSimilar = isSimilar
