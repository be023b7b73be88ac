// CoreDNS with the plugins that the cluster's Corefile names, and no others: those for the clouds are most of what there is
// to compile.
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

// In the order in which they answer, as in CoreDNS' own plugin.cfg.
func init() {
	dnsserver.Directives = []string{"ready", "health", "errors", "template", "kubernetes", "forward"}
}

func main() {
	coremain.Run()
}
