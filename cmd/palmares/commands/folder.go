package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/jsonschema"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/disk"
	"palmares/internal/core/store"
)

// Readme is the text for the editors of a folder.
type Readme string

func exportFolder(ctx context.Context, db *store.Store, dir string, asOf int, readme Readme) error {
	var out *folder.Writer
	err := publish.Records(ctx, db, asOf, func(header record.Header) (err error) {
		out, err = folder.NewWriter(dir, header)
		return err
	}, func(rec record.Record) error { return out.Write(rec) })
	if err != nil {
		return err
	}
	return out.Close([]byte(readme))
}

// New writes the file of a new record.
type New struct {
	Type   string `arg:"" enum:"tool,comparatif,cimetiere" help:"Type of the record: tool, comparatif or cimetiere."`
	Slug   string `arg:"" help:"Slug of the record; its file has this name."`
	Folder string `arg:"" help:"The catalog folder."`
}

func (c *New) Run(term Terminal) error {
	name, err := folder.New(c.Folder, c.Type, c.Slug, time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		return folder.Error(c.Folder, err)
	}
	_, err = fmt.Fprintf(term.Out, "%s: fill in the fields, then run palmares lint %s\n", filepath.Join(c.Folder, name), c.Folder)
	return err
}

// Retire moves a tool to the retired ones.
type Retire struct {
	Slug   string `arg:"" help:"Slug of the tool."`
	Folder string `arg:"" help:"The catalog folder."`
	Reason string `required:"" enum:"${reasons}" help:"Why: ${enum}."`
	Note   string `help:"What happened, in one sentence in French. Default: none, to be filled in."`
	Date   string `help:"Day of the retirement, as YYYY-MM-DD. Default: today."`
}

func (c *Retire) Run(ctx context.Context, term Terminal) error {
	retired := &record.Retired{Slug: c.Slug, Reason: c.Reason, Note: c.Note, RetiredAt: c.Date}
	if c.Date == "" {
		retired.RetiredAt = time.Now().UTC().Format(time.DateOnly)
	}
	name, err := folder.Retire(ctx, c.Folder, retired)
	if err != nil {
		return folder.Error(c.Folder, err)
	}
	advice := ""
	if c.Note == "" {
		advice = ": fill in the note"
	}
	_, err = fmt.Fprintf(term.Out, "%s%s\n", filepath.Join(c.Folder, name), advice)
	return err
}

// Schemas writes the JSON Schemas of a feed, with which programs check and complete the
// files of a catalog while they are edited.
type Schemas struct {
	Folder string `arg:"" help:"Folder for the schemas; it is created if it does not exist."`
}

func (c *Schemas) Run(term Terminal) error {
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return disk.Error(c.Folder, err)
	}
	for _, recordType := range record.FeedTypes {
		name := filepath.Join(c.Folder, recordType+".json")
		err := writeFeed(name, nil, func(w io.Writer) error {
			_, err := w.Write(jsonschema.Feed(recordType))
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(term.Out, name)
	}
	return nil
}
