package doctor

import (
	"fmt"
	"time"
)

const (
	// A day of quotas begins a little earlier on one server than on another.
	clockWarning = 2 * time.Second
	// Codes, sessions and signatures are refused, or last longer than we say.
	clockWrong = time.Minute
)

// clock compares another machine's clock with ours at the same moment.
func clock(r *report, check, whose string, theirs, ours time.Time) {
	ahead := theirs.Sub(ours).Round(time.Millisecond)
	apart := ahead.Abs()
	if apart <= clockWarning {
		r.ok(check, "It is within %s of ours.", max(apart, time.Millisecond))
		return
	}
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	add := r.warn
	if apart > clockWrong {
		add = r.wrong
	}
	add(check, fmt.Sprintf("%s clock is %s %s ours.", whose, apart.Round(time.Second), way), "Let a time service, such as chrony, set the clocks of both machines.", nil)
}
