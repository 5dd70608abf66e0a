package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
)

var scratches atomic.Int64

// Scratch makes a new, empty database in the cluster that URLVariable names.
func Scratch(ctx context.Context) (address string, drop func() error, err error) {
	cluster := os.Getenv(URLVariable)
	if cluster == "" {
		return "", nil, fmt.Errorf("no PostgreSQL to work on: use the Makefile, or set %s", URLVariable)
	}
	u, err := url.Parse(cluster)
	if err != nil {
		return "", nil, errors.New(URLVariable + " is not a valid address")
	}
	name := fmt.Sprintf("palmares_scratch_%d_%d", os.Getpid(), scratches.Add(1))
	if err := execute(ctx, cluster, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error {
		return execute(context.WithoutCancel(ctx), cluster, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func execute(ctx context.Context, address, statement string) error {
	db, err := sql.Open("postgres", address)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}
