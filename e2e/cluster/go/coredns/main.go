// CoreDNS with only the plugins that the cluster's Corefile names. The omitted ones, mainly for cloud providers, would take most of
// the build time.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

// The plugins answer in this order, as in CoreDNS' own plugin.cfg.
func init() {
	dnsserver.Directives = []string{"ready", "health", "errors", "template", "kubernetes", "forward"}
}

func main() {
	coremain.Run()
}
