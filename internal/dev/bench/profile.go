package main

import (
	"fmt"
	"os"
	"time"
)

// profile leaves a CPU profile of the server while it answers from its cache.
func (b *bench) profile() error {
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	env := []string{"PALMARES_DATA_DIR=" + b.dir + "/profile", "PALMARES_METRICS_LISTEN=" + metrics}
	if _, err := b.process(env, "import", b.feed(5_000)); err != nil {
		return err
	}
	key, err := b.key(env)
	if err != nil {
		return err
	}
	server, err := b.serve(env)
	if err != nil {
		return err
	}
	defer server.stop()
	done := make(chan error, 1)
	go func() {
		l := get("/api/v1/tools", "Authorization: Bearer "+key+"\r\n")
		l.Address, l.Connections, l.Duration, l.Status = server.address, connections, 12*time.Second, 200
		_, err := sendLoad(l)
		done <- err
	}()
	time.Sleep(time.Second)
	data, err := fetch("http://" + metrics + "/debug/pprof/profile?seconds=10")
	if err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	const name = "hit.prof"
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	fmt.Printf("go tool pprof -http : %s\n", name)
	return nil
}
