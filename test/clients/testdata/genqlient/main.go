// Reads all tools with a client that genqlient generated: main URL
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/Khan/genqlient/graphql"

	"client/catalog"
)

func main() {
	client := graphql.NewClient(os.Args[1], http.DefaultClient)
	after, slugs := "", map[string]bool{} // "" is what the client sends for the first page
	for {
		page, err := catalog.Tools(context.Background(), client, 20, after)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for _, tool := range page.ToolConnection.Nodes {
			slugs[tool.Slug] = true
		}
		if after = page.ToolConnection.PageInfo.EndCursor; !page.ToolConnection.PageInfo.HasNextPage {
			fmt.Printf("%d of %d tools\n", len(slugs), page.ToolConnection.TotalCount)
			return
		}
	}
}
