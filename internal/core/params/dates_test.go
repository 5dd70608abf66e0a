package params

import (
	"testing"

	"palmares/internal/dev/check"
)

func TestResolveDate(t *testing.T) {
	for relative, want := range map[string]string{
		"latest": "2026-08-31", "previous": "2026-07-01", "-1d": "2026-08-30", "-30d": "2026-08-01", "-6m": "2026-02-28", "-1m": "2026-07-31",
		"-12m": "2025-08-31", "-1y": "2025-08-31", "-30m": "2024-02-29",
	} {
		check.Equal(t, IsRelativeDate(relative), true, relative)
		check.Equal(t, ResolveDate(relative, "2026-08-31", "2026-07-01"), want, relative)
	}
	for _, text := range []string{"", "-", "6m", "-0d", "-6w", "-06m", "-10000d", "latest ", "2026-08-31"} {
		check.Equal(t, IsRelativeDate(text), false, text)
	}
}
