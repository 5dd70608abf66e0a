// Reads the demo catalog with the types of the document alone.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"client/catalog"
)

func main() {
	client, err := catalog.NewClientWithResponses(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	limit, order := 3, catalog.ScoreDesc
	list, err := client.ListToolsWithResponse(context.Background(), &catalog.ListToolsParams{Limit: &limit, Sort: &order})
	if err != nil || list.JSON200 == nil {
		log.Fatal("no list: ", err)
	}
	tool, err := client.GetToolWithResponse(context.Background(), "plume", nil)
	if err != nil || tool.JSON200 == nil {
		log.Fatal("no tool: ", err)
	}
	nobody, err := client.GetToolWithResponse(context.Background(), "nobody", nil)
	if err != nil || nobody.JSON404 == nil {
		log.Fatal("no 404 for an unknown tool: ", err)
	}
	withKey := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer key")
		return nil
	}
	table, err := client.DownloadToolsAsCsvWithResponse(context.Background(), nil, withKey)
	if err != nil || table.StatusCode() != http.StatusOK {
		log.Fatal("no table: ", err)
	}
	columns, _, _ := strings.Cut(string(table.Body), "\r\n")
	// These would not compile if the types were not exact.
	var score *float64 = tool.JSON200.Score
	var total int = list.JSON200.Meta.Total
	fmt.Printf("%d tools, the first %s, plume %v, %s %s\n", total, list.JSON200.Data[0].Name, *score, nobody.JSON404.Error, columns)
}
