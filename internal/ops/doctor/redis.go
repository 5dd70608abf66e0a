package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"

	"palmares/internal/core/quota"
)

func redis(ctx context.Context, cfg *Config, r *report) {
	if cfg.RedisURL == "" {
		r.ok("redis", "None is set: each server counts requests alone.")
		return
	}
	state, err := quota.InspectRedis(ctx, cfg.RedisURL, cfg.Now)
	var timeout net.Error
	const goesOn = "Each server counts alone meanwhile."
	switch {
	case quota.RefusesUs(err):
		r.wrong("redis", "Redis refuses the user or password, or what palmares asks for. "+goesOn, "Correct REDIS_URL, or let the user run scripts and read INFO.", err)
		return
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		r.wrong("redis", "Redis takes too long to answer. "+goesOn, "See whether it hangs, or the way to it is blocked.", err)
		return
	case err != nil:
		r.wrong("redis", "Redis cannot be reached. "+goesOn, "Start it, or correct REDIS_URL.", err)
		return
	case state.Follows:
		r.wrong("redis", "This Redis is a replica, which cannot be written to.", "Name the one that it follows in REDIS_URL.", nil)
		return
	}
	kept := "and keeps its counts on disk"
	if !state.Keeps {
		kept = "and keeps nothing on disk: after a restart of it, servers tell it what they knew"
	}
	r.ok("redis", "Redis %s answers, %s.", state.Version, kept)
	redisMemory(state, r)
	clock(r, "redis clock", "Redis'", state.Clock, state.AskedClock)
}

// redisMemory sees that no count is thrown away to make room: who had spent
// their quota would have it anew.
func redisMemory(state *quota.RedisState, r *report) {
	switch {
	case state.MemoryLimit == 0:
		r.ok("redis memory", "%s are in use, without a limit.", bytes(state.Memory))
	case state.Policy != "noeviction":
		r.warn("redis memory", fmt.Sprintf("When its %s are full, Redis throws counts away (%s).", bytes(state.MemoryLimit), state.Policy),
			"Set its maxmemory-policy to noeviction.", nil)
	case state.Memory > state.MemoryLimit/10*9:
		r.warn("redis memory", fmt.Sprintf("%s of %s are in use; when they are full, nothing is counted there.", bytes(state.Memory), bytes(state.MemoryLimit)),
			"Raise its maxmemory.", nil)
	default:
		r.ok("redis memory", "%s of %s are in use, and nothing is thrown away.", bytes(state.Memory), bytes(state.MemoryLimit))
	}
}
