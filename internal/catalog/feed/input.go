package feed

import "io"

// InputError is a feed that cannot be read, through no fault of its own. It
// hides its cause from whoever looks for a database's errors.
type InputError struct{ Cause error }

func (e *InputError) Error() string { return "the feed cannot be read" }

// input is a feed that is read from its start several times.
type input struct {
	source   io.ReadSeeker
	progress func(stage string, done, total int64)
}

// open starts another reading.
func (in *input) open(stage string) (io.Reader, error) {
	total, err := in.source.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = in.source.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, &InputError{err}
	}
	if in.progress == nil {
		return in.source, nil
	}
	return &meter{r: in.source, stage: stage, total: total, tell: in.progress}, nil
}

// meter tells how far a reading has come.
type meter struct {
	r           io.Reader
	stage       string
	done, total int64
	tell        func(stage string, done, total int64)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.done += int64(n)
	m.tell(m.stage, m.done, m.total)
	return n, err
}
