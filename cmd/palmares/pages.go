package main

import (
	"net/http"

	"palmares/internal/web/guide"
	"palmares/internal/web/page"
	"palmares/internal/web/site"
	"palmares/internal/web/status"
	"palmares/internal/web/workbench"
)

// registerPages adds what people read: the catalog as pages, and the assets of
// all of them.
func (p *program) registerPages(mux *http.ServeMux) error {
	catalog, err := site.New(site.Config{
		PublicURL: p.settings.PublicURL, ServiceName: p.settings.ServiceName, Credit: p.settings.credit(),
		Executor: p.executor, Answers: p.answers, Log: p.log, Trusted: p.settings.proxies,
		Others: []string{"/docs", "/explorer", "/guides", "/account", "/login", "/graphql", "/llms.txt", "/status", "/feeds/changes.atom"},
	})
	if err != nil {
		return err
	}
	catalog.Register(mux)
	mux.Handle(status.Path, status.NewPage(status.Config{
		PublicURL: p.settings.PublicURL, ServiceName: p.settings.ServiceName, Credit: p.settings.credit(), Store: p.store, Log: p.log, Healthy: p.minutes.Healthy,
	}))
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.Own, site.Assets, status.Assets, guide.Assets, workbench.Assets))
	return nil
}
