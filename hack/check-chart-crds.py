"""Renders the chart against a cluster whose CRDs are newer or older: `check-chart-crds.py HELM CHART`.

An older chart must keep the spec of a newer CRD, and a newer chart must replace that of an older one. The API server is a part of one,
in this process: it answers what Helm's `lookup` asks.
"""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
KEPT = "the field of a newer version: keep it {{ as it is }}"


class Server(BaseHTTPRequestHandler):
    """Answers discovery and reads of CRDs."""

    # The version of each CRD in the cluster; without CRDs, None.
    version = None
    # The kinds that the chart uses, by API version.
    kinds = {}

    def do_GET(self):
        path = self.path.split("?")[0]
        api_version = path.removeprefix("/apis/").removeprefix("/api/")
        if path == "/version":
            body = {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
        elif path == "/api":
            body = {"kind": "APIVersions", "versions": ["v1"]}
        elif path == "/apis":
            groups = [{"name": name.split("/")[0], "versions": [{"groupVersion": name, "version": name.split("/")[1]}]}
                      for name in self.kinds if "/" in name]
            body = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        elif api_version in self.kinds:
            resources = [{"name": f"{kind.lower()}s", "singularName": "", "kind": kind, "verbs": ["get"],
                          "namespaced": False} for kind in self.kinds[api_version]]
            body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}
        elif path.startswith(CRDS) and Server.version is not None:
            annotations = {"bloomery.dev/crd-version": Server.version} if Server.version else {}
            # Helm only takes objects of its own release.
            annotations |= {"meta.helm.sh/release-name": "bloomery", "meta.helm.sh/release-namespace": "default"}
            metadata = {"name": path.removeprefix(CRDS), "annotations": annotations,
                        "labels": {"app.kubernetes.io/managed-by": "Helm"}}
            body = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
                    "metadata": metadata, "spec": {"group": KEPT}}
        else:
            return self.answer(404, {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"})
        return self.answer(200, body)

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def template(helm, chart, *arguments):
    command = [helm, "template", "bloomery", chart, *arguments]
    shown = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "KUBECONFIG": os.devnull}, check=False)
    if shown.returncode:
        sys.exit(f"{' '.join(command)}: {shown.stderr}")
    return shown.stdout


def main(helm, chart):
    for api_version, kind in re.findall(r"^apiVersion: (.*)\nkind: (.*)$", template(helm, chart), re.M):
        Server.kinds.setdefault(api_version, set()).add(kind)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"

    def rendered(version):
        Server.version = version
        text = template(helm, chart, "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", url)
        return re.findall(r'^    bloomery.dev/crd-version: "(.*)"$', text, re.M), text.count(KEPT)

    own, _ = rendered(None)
    replaced, kept = (own, 0), (["999"] * len(own), len(own))
    for version, expected in {"": replaced, "0": replaced, own[0]: replaced, "999": kept}.items():
        if (found := rendered(version)) != expected:
            sys.exit(f"with CRDs of version {version!r} in the cluster, the chart renders {found}, expected {expected}")
    print(f"the chart keeps the specs of {len(own)} newer CRDs, and replaces those of older ones")


main(*sys.argv[1:])
