//go:build race

package blackbox

const underRace = true
