package main

import (
	"context"
	"errors"
	"fmt"

	"palmares/internal/ops/doctor"
)

// healthCommand is for those who run a container: it has no shell or curl to
// ask with.
type healthCommand struct{}

// Run asks the server that listens where the settings say.
func (healthCommand) Run(ctx context.Context, s *settings, term terminal) error {
	address, err := doctor.LocalAddress(s.Listen)
	if err != nil {
		return fmt.Errorf("PALMARES_LISTEN: %w", err)
	}
	status, err := doctor.Ready(ctx, address)
	var notReady *doctor.NotReady
	switch {
	case errors.As(err, &notReady):
		return notReady
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("no server answers on %s", s.Listen)
	}
	_, err = fmt.Fprintf(term.out, "ready, with release %d\n", status.Release)
	return err
}
