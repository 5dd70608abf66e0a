package webhook

import "time"

// times bound what sending takes. Tests shorten them.
type times struct {
	attempt time.Duration // until the end of an answer
	prompt  time.Duration // an answer is waited for before the next event is begun
	work    time.Duration // an endpoint is sent to, before it is another's turn
	record  time.Duration // writing down what came of it, as the server ends
	locked  time.Duration // the same, while the database is kept by others
	letter  time.Duration // until a letter is tried again
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
	locked:  15 * time.Minute,
	letter:  time.Minute,
	stop:    10 * time.Second,
	look:    2 * time.Second,
	poll:    300 * time.Millisecond,
	dead:    4 * time.Second,
}

// stuck is when River takes up a job whose process died, if no server has
// taken it over before. One that is only waiting to write down what it sent is
// left to it by its own process: see wakeWorker.
func (t times) stuck() time.Duration { return t.work + t.attempt + t.record + 5*time.Second }
