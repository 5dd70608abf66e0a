package main

import (
	"fmt"
	"net"

	"palmares/rest"
)

type openapiCommand struct{}

// Run prints the document as the server of these settings serves it, with the
// examples of the demo catalog.
func (openapiCommand) Run(s *settings, term terminal) error {
	address, err := net.ResolveTCPAddr("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %s", s.Listen, listenProblem(err))
	}
	s.servedAt(address)
	document, err := rest.Describe(s.rest())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(term.out, "%s\n", document)
	return err
}
