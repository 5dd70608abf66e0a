//go:build !race

package blackbox

const underRace = false
