package doctor

import (
	"context"
	"fmt"
	"strings"
)

// settings are right by themselves, or nothing would have come this far. What
// is misspelt has no effect at all, and nobody notices.
func settings(_ context.Context, cfg *Config, r *report) {
	if len(cfg.UnknownVariables) > 0 {
		r.warn("settings", fmt.Sprintf("The environment has %s, which palmares does not know.", strings.Join(cfg.UnknownVariables, ", ")),
			"Correct the name: palmares --help lists them all.", nil)
		return
	}
	r.ok("settings", "They can be used as they are.")
}
