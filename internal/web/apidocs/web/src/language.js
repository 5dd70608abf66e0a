// GraphQL's parser and printer. They are imported from their own files, because the
// package as a whole cannot be split between the pages and GraphiQL.
export { parse } from "graphql/language/parser.mjs";
export { print } from "graphql/language/printer.mjs";
