"""Finds import cycles between the modules of the workspace's crates.

A module is a file: `src/lib.rs`, `src/text.rs`, `src/run/key.rs`. Module A imports from module B where the code of A names an
item that B defines:

- in a `use` declaration: `use crate::text::bounded;`
- in a path: `crate::text::bounded(...)`, `super::Error`, or `text::bounded(...)` after `use crate::text;`
- in an attribute: `#[serde(default = "super::default_port")]`

A re-export (`pub use`) is no import by itself. A name that is imported from a re-export counts as imported from the module that
defines it. So a parent may re-export items of its children, and a child may import an item from there that a sibling defines.
A parent that also uses a re-exported item itself imports it.

Tests are left out: each item under `#[cfg(test)]`, and the files of modules that are declared so.

Limits: an import may be missed, but none is reported that does not exist.

- A method call does not name the module of its `impl` block.
- `macro_rules!` macros have no path.
- A name from a glob (`use super::*`) counts as defined in the parent.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

# The path of a module within its crate, `("run", "key")`; the crate's root is `()`.
ModulePath = tuple[str, ...]

# Reads a source file by its path; None if the file does not exist.
ReadFile = Callable[[PurePosixPath], str | None]


# Sources ---------------------------------------------------------------------------------------------------------------------

# Comments, strings and characters: nothing in them is code.
NOT_CODE = re.compile(
    r"""
      //[^\n]* | /\*.*?\*/
    | (?<!\w)(?:b|c)?r(?P<hashes>\#*)".*?"(?P=hashes)
    | "(?P<string>(?:\\.|[^"\\])*)"
    | '(?:\\.[^']*|[^\\'\n])'
    """,
    re.DOTALL | re.VERBOSE,
)

# Attributes whose string is a path.
TAKES_A_PATH = re.compile(
    r"\b(?:default|(?:de)?serialize_with|from|getter|into|schema_with|skip_serializing_if|try_from|with)\s*=\s*$"
)

TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]\s*")
USE = re.compile(r"\b(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);")
MODULE_FILE = re.compile(r"\bmod\s+(\w+)\s*;")
INLINE_MODULE = re.compile(r"\bmod\s+\w+\s*\{")
DEFINITION = re.compile(r"\b(?:const|enum|fn|macro_rules!|mod|static|struct|trait|type|union)\s+(?:mut\s+)?(\w+)")
SUPERS = re.compile(r"(?<![\w:])(?:super::)+")
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


def code_of(source: str) -> str:
    """Returns a source without comments, strings and tests, and with `super` as seen from the file's own module."""
    code = NOT_CODE.sub(lambda found: blank_or_path(source, found), source)
    return flattened(without_tests(code))


def blank_or_path(source: str, found: re.Match[str]) -> str:
    """Replaces what is not code, but keeps the string of an attribute that takes a path."""
    string = found["string"] or ""
    is_path = re.fullmatch(r"\w+(?:::\w+)+", string)
    if is_path and TAKES_A_PATH.search(source, max(0, found.start() - 40), found.start()):
        return string
    return " "


def end_of_block(code: str, begin: int) -> int:
    """Returns where the item or statement ends that begins at `begin`: after its `;` or its last `}`."""
    depth = 0
    for at in range(begin, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth < 0:
                return at
            if depth == 0 and code[at] == "}":
                return at + 1
        elif code[at] == ";" and depth == 0:
            return at + 1
    return len(code)


def without_tests(code: str) -> str:
    """Cuts out each item under `#[cfg(test)]`."""
    while found := TEST_ATTRIBUTE.search(code):
        code = code[: found.start()] + code[end_of_block(code, found.end()) :]
    return code


def flattened(code: str) -> str:
    """Rewrites paths in inline modules (`mod seen { ... }`), which belong to the file: there, `super` is the file's module."""
    at = 0
    while found := INLINE_MODULE.search(code, at):
        end = end_of_block(code, found.start())
        body = SUPERS.sub(lambda supers: supers[0].removeprefix("super::") or "self::", code[found.end() : end])
        code = code[: found.end()] + body + code[end:]
        at = found.end()
    return code


def use_tree(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each name that a `use` declaration brings in, and its path: `a::{b, c as d}` is `b`, `a::b` and `d`, `a::c`."""
    text = text.strip()
    if group := re.fullmatch(r"(?P<prefix>.*?)(?:::)?\{(?P<inner>.*)\}", text, re.DOTALL):
        prefix = segments(group["prefix"])
        for part in split_at_commas(group["inner"]):
            for name, path in use_tree(part):
                whole = prefix + path
                if path == ["self"]:
                    whole = prefix
                    name = prefix[-1] if name == "self" else name
                yield name, whole
    elif text:
        path, _, alias = (part.strip() for part in text.partition(" as "))
        yield alias or segments(path)[-1], segments(path)


def split_at_commas(text: str) -> Iterator[str]:
    """Splits a group of a use tree at its own commas, not at those of groups within."""
    depth = begin = 0
    for at, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def segments(path: str) -> list[str]:
    return [segment.strip() for segment in path.split("::") if segment.strip()]


# Modules ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Module:
    """One file of a crate."""

    # The code without its `use` declarations.
    body: str
    children: set[str] = field(default_factory=set)
    definitions: set[str] = field(default_factory=set)
    # The names that private `use` declarations bring in, and those of `pub use`, with their paths as written.
    imports: dict[str, list[str]] = field(default_factory=dict)
    reexports: dict[str, list[str]] = field(default_factory=dict)
    # The modules of `use path::*` and of `pub use path::*`.
    globs: list[list[str]] = field(default_factory=list)
    reexported_globs: list[list[str]] = field(default_factory=list)

    def names_itself(self, name: str) -> bool:
        """Whether the code uses a bare name: not as a field, a method, a later segment of a path or in a definition."""
        return re.search(rf"(?<![\w.:])(?<!\bfn )(?<!\bmod ){re.escape(name)}\b(?!\s*:(?!:))", self.body) is not None


# The names that one module imports from others, by the module that defines them.
Imports = dict[ModulePath, set[str]]


class Crate:
    """The modules of one library or program, and their imports."""

    def __init__(self, root: PurePosixPath, read: ReadFile):
        self.modules: dict[ModulePath, Module] = {}
        self.read = read
        self.load((), root, root.parent)

    def load(self, path: ModulePath, file: PurePosixPath, directory: PurePosixPath) -> None:
        """Reads a module's file, and those of its children, which are in `directory`."""
        code = code_of(self.read(file) or "")
        module = Module(body=USE.sub("", code), definitions=set(DEFINITION.findall(code)))
        self.modules[path] = module
        for found in USE.finditer(code):
            names, globs = (
                (module.reexports, module.reexported_globs) if found["public"] else (module.imports, module.globs)
            )
            for name, target in use_tree(found["tree"]):
                if name == "*":
                    globs.append(target[:-1])
                else:
                    names[name] = target
        for name in MODULE_FILE.findall(code):
            for child in (directory / f"{name}.rs", directory / name / "mod.rs"):
                if self.read(child) is not None:
                    module.children.add(name)
                    self.load((*path, name), child, directory / name)
                    break

    def resolve(self, path: ModulePath, names: list[str], depth: int = 0) -> tuple[ModulePath, str | None] | None:
        """Returns the module that defines what a path in a module's code names, and the item; None if it is not in this crate.

        The item is None if the path names a module.
        """
        module = self.modules[path]
        first, rest = names[0], names[1:]
        if first == "crate":
            return self.find((), rest, depth)
        if first == "self":
            return self.find(path, rest, depth)
        if first == "super":
            above = names.count("super")
            return self.find(path[: len(path) - above], names[above:], depth) if above <= len(path) else None
        if first in module.children:
            return self.find(path, names, depth)
        target = module.imports.get(first) or module.reexports.get(first)
        if target and target[0] != first and depth < 16:
            return self.resolve(path, target + rest, depth + 1)
        return None

    def find(self, path: ModulePath, names: list[str], depth: int) -> tuple[ModulePath, str | None] | None:
        """Follows names down from a module, and through re-exports, to the module that defines the item."""
        while names and (*path, names[0]) in self.modules:
            path, names = (*path, names[0]), names[1:]
        if not names:
            return path, None
        module, name = self.modules[path], names[0]
        if name in module.definitions or depth >= 16:
            return path, name
        target = module.reexports.get(name) or module.imports.get(name)
        if target:
            return self.resolve(path, target + names[1:], depth + 1)
        for glob in module.reexported_globs:
            found = self.resolve(path, [*glob, name], depth + 1)
            if found and name in self.modules[found[0]].definitions:
                return found
        return path, name

    def imports_of(self, path: ModulePath) -> Imports:
        """Returns the names that a module imports, by the module that defines them."""
        module = self.modules[path]
        named = list(module.imports.values())
        named += [target for name, target in module.reexports.items() if module.names_itself(name)]
        named += [found.split("::") for found in PATH.findall(module.body)]
        found: Imports = {}
        for names in named:
            target = self.resolve(path, names)
            if target and target[1] is not None and target[0] != path:
                found.setdefault(target[0], set()).add(target[1])
        for glob in module.globs:
            target = self.resolve(path, [*glob, "*"])
            if target and target[0] != path:
                found.setdefault(target[0], set()).add("*")
        return found

    def cycles(self) -> list[dict[ModulePath, Imports]]:
        """Returns each group of modules that import each other, directly or through others, with the imports within it."""
        imports = {path: self.imports_of(path) for path in self.modules}
        return [
            {path: {to: names for to, names in imports[path].items() if to in group} for path in sorted(group)}
            for group in strongly_connected({path: set(to) for path, to in imports.items()})
            if len(group) > 1
        ]


def strongly_connected(edges: dict[ModulePath, set[ModulePath]]) -> list[set[ModulePath]]:
    """Returns the strongly connected components of a graph, by Tarjan's algorithm."""
    number: dict[ModulePath, int] = {}
    lowest: dict[ModulePath, int] = {}
    stack: list[ModulePath] = []
    components: list[set[ModulePath]] = []

    def visit(node: ModulePath) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for to in sorted(edges[node]):
            if to not in number:
                visit(to)
                lowest[node] = min(lowest[node], lowest[to])
            elif to in stack:
                lowest[node] = min(lowest[node], number[to])
        if lowest[node] == number[node]:
            at = stack.index(node)
            components.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return components


# Self-test -------------------------------------------------------------------------------------------------------------------

# Small crates: a title, the files, and the modules of the only cycle ("" if there is none).
FIXTURES: list[tuple[str, dict[str, str], str]] = [
    ("a child and its parent", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }", "a/b": "use super::f; fn g() {}"}, "a a::b"),
    ("two siblings", {"lib": "mod a; mod b;", "a": "use crate::b::B; struct A;", "b": "struct B(crate::a::A);"}, "a b"),
    ("one way", {"lib": "mod a; mod b; use b::B;", "a": "struct A;", "b": "use crate::a::A; struct B;"}, ""),
    ("over a third", {"lib": "mod a; mod b; mod c;", "a": "use crate::b::B; struct A;", "b": "use super::c; struct B(c::C);",
                      "c": "use super::{a::{self}, b}; struct C(a::A);"}, "a b c"),
    ("a re-export is followed", {"lib": "mod a;", "a": "mod b; mod c; pub use b::B;", "a/b": "use super::c::C; struct B;",
                                 "a/c": "use super::B; struct C;"}, "a::b a::c"),
    ("a re-export is no import", {"lib": "mod a;", "a": "mod b; pub use b::B; struct A;", "a/b": "use super::A; struct B;"}, ""),
    ("but its use is", {"lib": "mod a;", "a": "mod b; pub use b::B; struct A(B);", "a/b": "use super::A; struct B;"}, "a a::b"),
    ("a glob of re-exports", {"lib": "mod a; mod b; pub use b::*;", "a": "use crate::B; struct A;", "b": "struct B(super::a::A);"},
     "a b"),
    ("a renamed import", {"lib": "mod a; mod b;", "a": "use crate::b as other; struct A(other::B);",
                          "b": "use crate::a::A as X; struct B;"}, "a b"),
    ("a test in the file", {"lib": "mod a;", "a": "mod b; fn f() { b::g() } fn h() {}",
                            "a/b": "fn g() {} #[cfg(test)] mod tests { use super::super::h; fn x() -> [u8; 2] {} }"}, ""),
    ("a test's own file", {"lib": "mod a;", "a": "#[cfg(test)]\nmod tests;\nmod b; fn f() { b::g() }", "a/b": "fn g() {}",
                           "a/tests": "use super::f;"}, ""),
    ("after a test", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }",
                      "a/b": "#[cfg(test)] const X: [u8; 1] = [0]; use super::f; fn g() {}"}, "a a::b"),
    ("comments and strings", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }",
                              "a/b": "// super::f\n/* super::f */ fn g() { 'x'; '\\''; \"super::f\"; r#\"super::f\"# }"}, ""),
    ("the path of an attribute", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }",
                                  "a/b": "struct G { #[serde(default = \"super::f\")] x: u8 } fn g() {}"}, "a a::b"),
    ("a visibility", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }", "a/b": "pub(in crate::a) fn g() {}"}, ""),
    ("an inline module", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }", "a/b": "mod c { use super::g; } fn g() {}"}, ""),
    ("above an inline module", {"lib": "mod a;", "a": "mod b; fn f() { b::g() }",
                                "a/b": "mod c { use super::super::f; } fn g() {}"}, "a a::b"),
    ("far above one", {"lib": "mod a; fn f() { a::g() }", "a": "mod b; fn g() { b::h() }",
                       "a/b": "mod c { use super::super::super::f; } fn h() {}"}, "a a::b the crate's root"),
]  # fmt: skip


def named(path: ModulePath) -> str:
    return "::".join(path) or "the crate's root"


def self_test() -> None:
    """Checks that the search finds the known cycles of small crates.

    Raises:
        SystemExit: The search found something else.
    """
    for title, files, expected in FIXTURES:
        sources = {f"src/{name}.rs": text for name, text in files.items()}
        cycles = Crate(PurePosixPath("src/lib.rs"), lambda path: sources.get(str(path))).cycles()
        found = " ".join(sorted(named(path) for cycle in cycles for path in cycle))
        if found != expected or len(cycles) > 1:
            sys.exit(f"error: hack/check-cycles is broken: in '{title}' it finds a cycle of '{found}', not of '{expected}'")


# Main ------------------------------------------------------------------------------------------------------------------------


def read_file(path: PurePosixPath) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def workspace() -> list[tuple[str, PurePosixPath]]:
    """Returns the root file of each library and program of the workspace, with the name of its crate."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [
        (package["name"], PurePosixPath(target["src_path"]).relative_to(metadata["workspace_root"]))
        for package in metadata["packages"]
        for target in package["targets"]
        if {"lib", "bin", "proc-macro"} & set(target["kind"])
    ]


def in_directory(directory: str) -> tuple[str, PurePosixPath]:
    root = PurePosixPath(directory) / "lib.rs"
    return directory, root if read_file(root) is not None else root.with_name("main.rs")


def report(crate: str, root: PurePosixPath, cycle: dict[ModulePath, Imports]) -> None:
    print(f"{crate} ({root.parent}): {len(cycle)} modules import each other", file=sys.stderr)
    for path, imports in cycle.items():
        for to, names in sorted(imports.items()):
            print(f"  {named(path)} -> {named(to)}: {', '.join(sorted(names))}", file=sys.stderr)


def main(directories: list[str]) -> None:
    self_test()
    roots = [in_directory(directory) for directory in directories] or workspace()
    modules = cycles = 0
    for crate, root in roots:
        loaded = Crate(root, read_file)
        modules += len(loaded.modules)
        for cycle in loaded.cycles():
            cycles += 1
            report(crate, root, cycle)
    if cycles:
        sys.exit(
            f"error: {cycles} import cycles. Usually the types that both sides need move into a module of their own, which"
            " imports neither; the module above re-exports them"
        )
    if not modules:
        sys.exit("error: hack/check-cycles found no module: the search itself is broken")
    print(f"no import cycle in {modules} modules")


if __name__ == "__main__":
    main(sys.argv[1:])
