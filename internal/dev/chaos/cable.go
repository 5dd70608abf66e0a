package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// cable is the network between one server and PostgreSQL, to be cut: what is
// sent disappears and nobody hears of it. When it is mended, connections of
// before are closed.
type cable struct{ proxy *toxiproxy.Proxy }

func newCable(to string) (*cable, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	c := &cable{toxiproxy.NewProxy(server, "postgres", "127.0.0.1:0", to)}
	return c, c.proxy.Start()
}

// directions are the cable's two.
var directions = []string{"upstream", "downstream"}

func (c *cable) cut() error {
	for _, direction := range directions {
		toxic := fmt.Sprintf(`{"name":%q,"type":"timeout","stream":%[1]q,"attributes":{"timeout":0}}`, direction)
		if _, err := c.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cable) mend(ctx context.Context) error {
	for _, direction := range directions {
		if err := c.proxy.Toxics.RemoveToxic(ctx, direction); err != nil {
			return err
		}
	}
	return nil
}

// through is a database's address by way of the cable.
func (c *cable) through(database string) (string, error) {
	address, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	address.Host = c.proxy.Listen
	return address.String(), nil
}

func hostOf(database string) (string, error) {
	address, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	return address.Host, nil
}
