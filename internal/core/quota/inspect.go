package quota

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisState is what a Redis reports about itself.
type RedisState struct {
	Version     string
	IsReplica   bool   // it is a read-only replica
	Policy      string // maxmemory-policy
	Memory      int64  // in use, in bytes
	MemoryLimit int64  // 0 for unlimited
	Persistent  bool   // it persists data, or does not report whether it does
	Clock       time.Time
	LocalClock  time.Time // this machine's, at the same moment
}

// InspectRedis returns the state of the Redis at a URL, without changing it.
func InspectRedis(ctx context.Context, url string, now func() time.Time) (*RedisState, error) {
	options, err := redisOptions(url)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	defer client.Close()
	// Counting needs scripts, which the Redis user may not be allowed to run.
	if err := client.Eval(ctx, "return 1", nil).Err(); err != nil {
		return nil, err
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	state := &RedisState{Version: fields["redis_version"], IsReplica: fields["role"] == "slave", Policy: fields["maxmemory_policy"]}
	state.Memory, _ = strconv.ParseInt(fields["used_memory"], 10, 64)
	state.MemoryLimit, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	// Hosted servers often do not allow this command.
	snapshots, err := client.ConfigGet(ctx, "save").Result()
	state.Persistent = fields["aof_enabled"] == "1" || err != nil || snapshots["save"] != ""
	before := now()
	if state.Clock, err = client.Time(ctx).Result(); err != nil {
		return nil, err
	}
	state.LocalClock = before.Add(now().Sub(before) / 2)
	return state, nil
}

// IsAuthError reports whether an error of Redis is about the user or password,
// rather than about the connection.
func IsAuthError(err error) bool {
	codes := []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR invalid password", "ERR AUTH"}
	return err != nil && slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(err.Error(), code) })
}
