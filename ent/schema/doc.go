// Package schema declares what the databases hold: the catalog, its releases
// and the journal of its changes. It is the only hand-written part of ent;
// rules about feeds, requests or plans do not enter here.
//
// Three choices run through every entity:
//   - A slug is the primary key. Slugs are unique and stable by contract, so
//     references are readable and no join is needed to name a category.
//   - Dates are text, YYYY-MM-DD. They sort as dates on every database and
//     have no time zone to get wrong.
//   - What decides an order is stored (name_key, untested), never left to a
//     database's collation or its idea of where NULL sorts.
package schema
