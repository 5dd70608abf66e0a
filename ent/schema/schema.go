// Package schema declares what the database stores. It is the only hand-written
// part of ent, and does not depend on feeds, requests or plans.
//
// Four choices apply to every entity of the catalog:
//   - A slug is the primary key. Slugs are unique and stable by contract, so
//     references are readable and no join is needed to name a category.
//   - Dates are text, YYYY-MM-DD. They sort as dates on every database and
//     have no time zone to get wrong.
//   - The key that names are sorted by is stored (name_key), because databases
//     differ in their collations.
//   - Almost all columns are immutable, because an import replaces whole rows.
//
// An edge has an inverse only if code follows it: each one adds hundreds of
// generated lines. Symbols are the names of foreign keys.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// pricingModels are shared by tools and price changes.
var pricingModels = []string{"gratuit", "freemium", "payant"}

// slugID makes the slug the primary key.
func slugID() ent.Field {
	return field.String("id").StorageKey("slug").NotEmpty().MaxLen(80).Immutable()
}

// fingerprint lets an import recognize unchanged records.
func fingerprint() ent.Field {
	return field.String("fingerprint").Immutable().
		Comment("Hash of the feed record that this row was last written from.")
}

func sinceRelease() ent.Field {
	return field.Int("since_release").Default(1).
		Comment("The release that this row was last written by.")
}
