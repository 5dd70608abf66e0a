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
	return field.String("fingerprint").
		Comment("Hash of the feed record that this row was last written from.")
}

func sinceRelease() ent.Field {
	return field.Int("since_release").Default(1).
		Comment("The release that this row was last written by.")
}
