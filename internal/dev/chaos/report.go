package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// printTable prints a row for each fault.
func printTable(w io.Writer, all []*outcome) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| fault\t| cached reads\t| failed\t| p99\t| worst\t| uncached\t| refused, 503\t| failed\t| p99\t| worst\t| counts lost / doubled, ledger\t| Redis\t| granted of 100 a day\t| events\t| lost / doubled\t| last failure after\t| news after\t| delivered after\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, o := range all {
		if o.note != "" {
			fmt.Fprintf(table, "| %s\t| %s\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\t|\n", o.fault.name, o.note)
			continue
		}
		fmt.Fprintf(table, "| %s\t| %d\t| %d\t| %s\t| %s\t| %d\t| %d\t| %d\t| %s\t| %s\t| %d / %d\t| %d / %d\t| %s\t| %d\t| %d / %d\t| %s\t| %s\t| %s\t|\n", o.fault.name,
			o.cached.asked, o.cached.failed, milli(o.cached.p99), milli(o.cached.worst),
			o.uncached.asked, o.uncached.told, o.uncached.failed, milli(o.uncached.p99), milli(o.uncached.worst),
			o.lostUsage, o.moreUsage, o.lostIn, o.moreIn, orNone(o.granted), o.events, o.lost, o.doubled,
			seconds(o.recovered), seconds(o.news), seconds(o.posted))
	}
	return table.Flush()
}

func milli(d time.Duration) string {
	if d >= time.Second {
		return seconds(d)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func orNone(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
