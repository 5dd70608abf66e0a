package quota

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis keeps a count as "count:birth". The birth is a random number, written
// when the count begins: a count of another birth than before was lost and
// begun anew, however high it is.

const keptSeconds = int(keptDays / time.Second)

// takeScript counts one request unless the quota is spent, and returns the
// count, whether it did, and the count's birth. A count that Redis does not
// have begins from what the server knows.
var takeScript = redis.NewScript(`
local count, birth = string.match(redis.call('GET', KEYS[1]) or ARGV[2] .. ':' .. ARGV[4], '^(%d+):?(%d*)$')
count = tonumber(count)
local granted = 0
if tonumber(ARGV[1]) == 0 or count < tonumber(ARGV[1]) then
	count = count + 1
	granted = 1
end
redis.call('SET', KEYS[1], count .. ':' .. birth, 'EX', ARGV[3])
return {count, granted, tonumber(birth) or 0}`)

// settleScript adds to a count what happened without Redis. It is then never
// less than what the server knows, if that is told.
var settleScript = redis.NewScript(`
local count, birth = string.match(redis.call('GET', KEYS[1]) or '0:' .. ARGV[4], '^(%d+):?(%d*)$')
count = math.max(tonumber(count) + ARGV[1], tonumber(ARGV[2]), 0)
redis.call('SET', KEYS[1], count .. ':' .. birth, 'EX', ARGV[3])
return count`)

// taken is what Redis says of one request.
type taken struct {
	count   int
	granted bool
	birth   int64
}

func takenOf(answer *redis.Cmd) (taken, error) {
	numbers, err := answer.Int64Slice()
	if err == nil && len(numbers) != 3 {
		err = errors.New("its answer is none")
	}
	if err != nil {
		return taken{}, err
	}
	return taken{int(numbers[0]), numbers[1] == 1, numbers[2]}, nil
}

// told is the count as a Store tells it: beyond the quota if it was refused.
func (t taken) told() int {
	if t.granted {
		return t.count
	}
	return t.count + 1
}

func newBirth() int64 { return 1 + rand.Int64N(1<<31) }

// births are those of counts that would be missed.
type births map[change]int64

// changed tells whether a count has another birth than it had, and keeps it.
func (b births) changed(who change, now taken) bool {
	before, known := b[who]
	if !known && now.count <= slack {
		return false
	}
	if !known && len(b) >= maxSubjects/shards {
		b.forget(who.day)
	}
	b[who] = now.birth
	return known && before != now.birth
}

// forget makes room: other days go, whether they are over or the clock was
// wrong, and if that is not enough, everything.
func (b births) forget(today Day) {
	for who := range b {
		if who.day != today {
			delete(b, who)
		}
	}
	if len(b) >= maxSubjects/shards {
		clear(b)
	}
}
