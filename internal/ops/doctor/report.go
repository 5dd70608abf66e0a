package doctor

import (
	"fmt"
	"sync"
)

// report gathers what a check finds. Once it is closed, nothing is added: a
// check that hangs may still wake up.
type report struct {
	mu     sync.Mutex
	found  []Finding
	closed bool
}

func (r *report) add(f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.found = append(r.found, f)
	}
}

func (r *report) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *report) ok(check, format string, args ...any) {
	r.add(Finding{Check: check, State: OK, Message: fmt.Sprintf(format, args...)})
}

func (r *report) warn(check, message, advice string, cause error) {
	r.add(Finding{Check: check, State: Warning, Message: message, Advice: advice, Cause: cause})
}

func (r *report) wrong(check, message, advice string, cause error) {
	r.add(Finding{Check: check, State: Wrong, Message: message, Advice: advice, Cause: cause})
}
