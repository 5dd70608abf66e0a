package quota

import (
	"bufio"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisState is what a Redis says of itself.
type RedisState struct {
	Version     string
	Follows     bool   // it is a replica, which cannot be written to
	Policy      string // of what goes first when its memory is full
	Memory      int64  // in use, in bytes
	MemoryLimit int64  // 0 for none
	Keeps       bool   // something on disk; true also where that is not told
	Clock       time.Time
	AskedClock  time.Time // our own, at the same moment
}

// InspectRedis asks a Redis for its state, and changes nothing of it.
func InspectRedis(ctx context.Context, address string, now func() time.Time) (*RedisState, error) {
	options, err := redisOptions(address)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled, options.MaxRetries = true, -1
	redis.SetLogger(silent{}) // its lines would name the address
	client := redis.NewClient(options)
	defer client.Close()
	// Counting is done by scripts: a user who may not run them is no use.
	if err := client.Eval(ctx, "return 1", nil).Err(); err != nil {
		return nil, err
	}
	info, err := client.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	told := fieldsOf(info)
	state := &RedisState{Version: told["redis_version"], Follows: told["role"] == "slave", Policy: told["maxmemory_policy"]}
	state.Memory, _ = strconv.ParseInt(told["used_memory"], 10, 64)
	state.MemoryLimit, _ = strconv.ParseInt(told["maxmemory"], 10, 64)
	state.Keeps = told["aof_enabled"] == "1" || saves(ctx, client)
	asked := now()
	if state.Clock, err = client.Time(ctx).Result(); err != nil {
		return nil, err
	}
	state.AskedClock = asked.Add(now().Sub(asked) / 2)
	return state, nil
}

// saves tells whether snapshots are written. Who rents a Redis may often not
// ask.
func saves(ctx context.Context, client *redis.Client) bool {
	setting, err := client.ConfigGet(ctx, "save").Result()
	return err != nil || setting["save"] != ""
}

func fieldsOf(info string) map[string]string {
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if name, value, found := strings.Cut(lines.Text(), ":"); found {
			fields[name] = value
		}
	}
	return fields
}

// RefusesUs tells whether an error of Redis is about who we are, and not about
// whether it answers.
func RefusesUs(err error) bool {
	if err == nil {
		return false
	}
	for _, code := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR invalid password", "ERR AUTH"} {
		if strings.HasPrefix(err.Error(), code) {
			return true
		}
	}
	return false
}
