package webhook

import "time"

// times bound what sending takes. Tests shorten them.
type times struct {
	attempt time.Duration // until the end of an answer
	prompt  time.Duration // an answer is waited for before the next event is begun
	work    time.Duration // an endpoint is sent to, before it is another's turn
	record  time.Duration // writing down what came of it, also as the server ends
	stop    time.Duration // Run takes to end
	look    time.Duration // between looks for what is due
	poll    time.Duration // between looks for jobs
	dead    time.Duration // a server is silent before others take its jobs over
}

var shipped = times{
	attempt: 15 * time.Second,
	prompt:  50 * time.Millisecond,
	work:    15 * time.Second,
	record:  20 * time.Second,
	stop:    10 * time.Second,
	look:    2 * time.Second,
	poll:    300 * time.Millisecond,
	dead:    4 * time.Second,
}

// job leaves room for the last answers, and for writing them down.
func (t times) job() time.Duration { return t.work + t.attempt + t.record }

// stuck is when River takes up a job whose process died, if no server has
// taken it over before.
func (t times) stuck() time.Duration { return t.job() + 5*time.Second }
