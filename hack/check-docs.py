"""Checks the *.md files of the repository. Called by hack/check-docs: check-docs.py BLOOMERY.

If BLOOMERY is `-`, manifests are not checked.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# First words of `sh` lines besides those that CHECKS knows.
PROGRAMS = {"alias", "bloomery", "bloomery-e2e-model", "bloomery-e2e-orders", "cargo", "cat", "cd", "chmod", "cp", "curl", "docker", "export", "ln", "mkdir", "mv", "source"}
RESOURCES = {
    "skill", "skills", "skilljob", "skilljobs", "sj", "model", "models", "approval", "approvals", "apr",
    "crd", "deployment", "events", "job.batch", "namespace", "networkpolicies", "pods", "pod", "pvc", "role", "rolebinding", "secret", "serviceaccount", "token",
}
KUBECTL = {"annotate", "apply", "bloomery", "create", "delete", "describe", "explain", "get", "label", "logs", "patch", "port-forward", "rollout", "wait"}
HELM = {"upgrade", "uninstall"}
# Verbs of kubectl that are not followed by a resource.
WITHOUT_RESOURCE = {"rollout", "apply", "bloomery", "logs", "explain", "port-forward"}

faults = []


def fault(page, message):
    faults.append(f"{page.relative_to(ROOT)}: {message}")


def pages():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()]


def prose(text):
    """Returns the text without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.S | re.M)


def anchors(path):
    """Returns the anchors that GitHub makes from the headings of a page."""
    found, seen = set(), {}
    for heading in re.findall(r"^#+ (.+)$", prose(path.read_text()), re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def check_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            fault(page, f"the link to {target} is broken: the file does not exist")
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            fault(page, f"the link to {target}: {path.relative_to(ROOT)} has no heading #{anchor}")


def blocks(text, kind):
    return [re.sub(rf"^{m.group(1)}", "", m.group(2), flags=re.M) for m in re.finditer(rf"^( *)```{kind}\n(.*?)^\1```$", text, re.S | re.M)]


HEREDOC = re.compile(r"^([^\n]*<<'(\w+)')\n(.*?)^\2\n", re.S | re.M)


def check_shell(page, text):
    for block in blocks(text, "sh"):
        for line in HEREDOC.sub(r"\1\n", block).replace("\\\n", " ").split("\n"):
            try:
                words = shlex.split(line, comments=True)
            except ValueError as error:
                fault(page, f"{line}: {error}")
                continue
            while words:
                command = words[: words.index("&&")] if "&&" in words else words
                words = words[len(command) + 1 :]
                check_command(page, line, command)


def check_command(page, line, words):
    program = words[0]
    if re.match(r"\w+=", program) or program in PROGRAMS:
        return
    if program == "make":
        targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
        for word in words[1:]:
            if word not in targets and "=" not in word and not word.startswith("-"):
                fault(page, f"{line}: there is no target {word}")
    elif program == "kubectl":
        check_kubectl(page, line, words[1:])
    elif program == "helm":
        if words[1] not in HELM:
            fault(page, f"{line}: the verb {words[1]} is not known to hack/check-docs.py")
    elif program.startswith("hack/"):
        if not (ROOT / program).exists():
            fault(page, f"{line}: there is no {program}")
    else:
        fault(page, f"{line}: the program {program} is not known to hack/check-docs.py")
    for word in words:
        if re.match(r"(charts|crds|docs|e2e|hack|skill-templates|cli)/", word) and not (ROOT / word).exists():
            fault(page, f"{line}: there is no {word}")


def check_kubectl(page, line, words):
    """Checks the verb and the resource of `[-n NAMESPACE] VERB [RESOURCE[/NAME]] ...`."""
    plain, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            plain.append(word)
        skip = not skip and word in ("-n", "-f", "-o", "-p", "-l", "--type", "--for", "--timeout", "--sort-by", "--tail")
    if not plain or plain[0] not in KUBECTL:
        fault(page, f"{line}: the verb {plain[:1]} is not known to hack/check-docs.py")
    elif plain[0] not in WITHOUT_RESOURCE:
        kinds = plain[1].split("/")[0].split(",") if len(plain) > 1 else ["nothing"]
        for kind in kinds:
            if kind not in RESOURCES:
                fault(page, f"{line}: the resource {kind} is not known to hack/check-docs.py")
    elif plain[0] == "explain" and plain[1].split(".")[0] not in RESOURCES:
        fault(page, f"{line}: there is no resource {plain[1]}")


def check_manifests(page, text, bloomery):
    texts = blocks(text, "yaml") + [found.group(3) for block in blocks(text, "sh") for found in HEREDOC.finditer(block)]
    for manifest in texts:
        if "apiVersion: bloomery.dev/" not in manifest or bloomery == "-":
            continue
        done = subprocess.run([bloomery, "lint", "-"], input=manifest, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fault(page, f"bloomery lint refuses a manifest:\n{manifest}\n{done.stdout}{done.stderr}")


def main():
    (bloomery,) = sys.argv[1:]
    found = pages()
    for page in found:
        text = page.read_text()
        check_links(page, text)
        if page.parent.name != "cluster":
            check_shell(page, text)
        check_manifests(page, text, bloomery)
    if faults:
        sys.exit("\n".join(["error: the documentation has faults:", *faults]))
    print(f"{len(found)} pages are valid")


main()
