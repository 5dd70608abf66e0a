//go:build ignore

// Entc generates the code of package ent from its schema: "make generate" runs it.
package main

import (
	"log"
	"os"
	"path/filepath"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
)

func main() {
	log.SetFlags(0)
	storage, err := gen.NewStorage("sql")
	check(err)
	// The program has its own migrations, so its client does without ent's, whose
	// libraries would be a twentieth of its build. Package migrate remains, for
	// development tools that compare the migrations with the schema.
	client := *storage
	client.SchemaMode &^= gen.Migrate
	generate(".", &client)
	whole, err := os.MkdirTemp("", "palmares-ent-")
	check(err)
	generate(whole, storage)
	check(os.RemoveAll("migrate"))
	check(os.CopyFS("migrate", os.DirFS(filepath.Join(whole, "migrate"))))
	check(os.RemoveAll(whole))
}

func generate(target string, storage *gen.Storage) {
	check(entc.Generate("./schema", &gen.Config{
		Target: target, Package: "palmares/ent", Storage: storage,
		Features:  []gen.Feature{gen.FeatureUpsert, gen.FeatureExecQuery},
		Templates: []*gen.Template{gen.MustParse(gen.NewTemplate("conflict").ParseFiles("conflict.tmpl"))},
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
