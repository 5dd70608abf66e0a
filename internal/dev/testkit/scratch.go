package testkit

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
	return scratch(ctx, "")
}

// scratch is Scratch with a copy of another database, if one is named.
func scratch(ctx context.Context, template string) (address string, drop func() error, err error) {
	name, drop, err := create(ctx, template)
	if err != nil {
		return "", nil, err
	}
	address, err = addressOf(name)
	return address, drop, err
}

// create makes a database and names it.
func create(ctx context.Context, template string) (name string, drop func() error, err error) {
	cluster, err := addressOf("")
	if err != nil {
		return "", nil, err
	}
	name = fmt.Sprintf("palmares_scratch_%d_%d", os.Getpid(), scratches.Add(1))
	statement := "CREATE DATABASE " + name
	if template != "" {
		statement += " TEMPLATE " + template
	}
	if err := execute(ctx, cluster, statement); err != nil {
		return "", nil, err
	}
	return name, func() error {
		return execute(context.WithoutCancel(ctx), cluster, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

// addressOf is where a database of the cluster is, or the cluster's own.
func addressOf(database string) (string, error) {
	cluster := os.Getenv(URLVariable)
	if cluster == "" {
		return "", fmt.Errorf("no PostgreSQL to work on: use the Makefile, or set %s", URLVariable)
	}
	u, err := url.Parse(cluster)
	if err != nil {
		return "", errors.New(URLVariable + " is not a valid address")
	}
	if database != "" {
		u.Path = "/" + database
	}
	return u.String(), nil
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
