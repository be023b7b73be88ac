"""Checks the rights of the operator and of the gateway in the rendered chart: `check-chart-rights.py HELM CHART`.

An operator of a list of namespaces has a Role in each, with the same rules that the ClusterRole of an operator of all namespaces has. The
gateway reviews tokens, and acts for users only if the values list them.
"""

import subprocess
import sys

import yaml

# The rights that remain in the ClusterRole: resources and verbs.
OF_CLUSTER = {
    "namespaces": {"list", "watch"},
    "validatingadmissionpolicies": {"list", "watch"},
    "validatingadmissionpolicybindings": {"list", "watch"},
    "tokenreviews": {"create"},
}


def rendered(helm, chart, *values, role="bloomery-operator"):
    """Returns the rules of the roles of this name, by kind and namespace."""
    command = [helm, "template", "bloomery", chart, "--namespace", "bloomery-system", *values]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    objects = [found for found in yaml.safe_load_all(text) if found]
    return {
        (found["kind"], found["metadata"].get("namespace")): found["rules"]
        for found in objects
        if found["kind"] in ("ClusterRole", "Role") and found["metadata"]["name"] == role
    }


def check_gateway(helm, chart):
    """Checks each combination of values that gives rights to the gateway."""

    def rules(*values):
        settings = [word for value in values for word in ("--set", f"gateway.{value}")]
        return rendered(helm, chart, *settings, role="bloomery-gateway")

    def impersonate(resource, *names):
        return {"apiGroups": [""], "resources": [resource], **({"resourceNames": list(names)} if names else {}), "verbs": ["impersonate"]}

    review = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    proxy = ("enabled=true", "proxy.users={system:serviceaccount:proxy:proxy}")
    users, any_user, groups = "users={jane,sam}", "anyUser=true", "groups={support}"
    expected = [
        ((), None),
        (("enabled=true",), [review]),
        ((*proxy, f"proxy.impersonate.{users}", f"proxy.impersonate.{groups}"), [review, impersonate("users", "jane", "sam"), impersonate("groups", "support")]),
        ((*proxy, f"proxy.impersonate.{any_user}", f"proxy.impersonate.{groups}"), [review, impersonate("users"), impersonate("groups", "support")]),
    ]
    for values, wanted in expected:
        found = rules(*values)
        if found != ({} if wanted is None else {("ClusterRole", None): wanted}):
            sys.exit(f"error: with {values}, the gateway has other rights than expected: {found}")


def main(helm, chart):
    everywhere = rendered(helm, chart)
    listed = rendered(helm, chart, "--set", "watch.namespaces={acme,beta}")
    places = {("ClusterRole", None), ("Role", "bloomery-system")}
    if set(everywhere) != places or set(listed) != places | {("Role", "acme"), ("Role", "beta")}:
        sys.exit(f"error: the operator has other roles than expected: {list(everywhere)} and {list(listed)}")
    of_cluster, of_tenant = listed["ClusterRole", None], listed["Role", "acme"]
    for rule in of_cluster:
        for resource in rule["resources"]:
            if not set(rule["verbs"]) <= OF_CLUSTER.get(resource, set()):
                sys.exit(f"error: with a list of namespaces, the ClusterRole allows {rule['verbs']} on {resource}")
            if resource == "namespaces" and rule.get("resourceNames") != ["acme", "beta"]:
                sys.exit("error: with a list of namespaces, the operator may read others")
    if of_tenant != listed["Role", "beta"]:
        sys.exit("error: the Roles of two namespaces differ")
    unnamed = [{key: value for key, value in rule.items() if rule["resources"] != ["namespaces"] or key != "resourceNames"} for rule in of_cluster]
    if unnamed + of_tenant != everywhere["ClusterRole", None]:
        sys.exit("error: the rights in a namespace depend on the list of namespaces")
    for rule in everywhere["ClusterRole", None]:
        if "secrets" in rule["resources"] or "*" in rule["resources"] + rule["verbs"] + rule["apiGroups"]:
            sys.exit(f"error: the operator has too many rights: {rule}")
    check_gateway(helm, chart)


main(*sys.argv[1:])
