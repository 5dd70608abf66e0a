package doctor

import (
	"context"
	"fmt"
	"time"

	"palmares/internal/core/store"
)

// stale is when a catalog looks forgotten.
const stale = 30 * 24 * time.Hour

func catalog(ctx context.Context, cfg *Config, db *store.Store, r *report) {
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		message, cause := said(ctx, err)
		r.wrong("catalog", sentence(message), "See the lines above.", cause)
		return
	}
	if release == nil {
		r.warn("catalog", "Nothing was imported yet.", "Import a feed: palmares import FILE.", nil)
		return
	}
	what := fmt.Sprintf("It is release %d, of %s, imported %s.", release.ID, release.FeedDate, ago(cfg.Now().Sub(release.ImportedAt)))
	if cfg.Now().Sub(release.ImportedAt) > stale {
		r.warn("catalog", what, "See whether the editors' imports still run.", nil)
		return
	}
	r.ok("catalog", "%s", what)
}
