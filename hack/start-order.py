"""Writes worker/start.ld, which places the modules that a start of `bloomery run` uses next to each other.

Linux maps 64 KiB around each part of a program that runs, so scattered functions cost memory. Valgrind (apt install valgrind) records
the functions that run until the first request to a model. Each line names the smallest modules that contain some of them, without the
hashes of the compiler, so the file stays useful when dependencies change. Run it when `make bench ONLY=start` misses its goal for memory.

Usage: start-order.py PROGRAM   (target/release/bloomery)
"""

import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

# The bytes of code that a line has to save. With a smaller number, the program needs less memory, and the file is longer.
BYTES_FOR_A_LINE = 5_000

# The parts of a name that are compared. A generic function can have a thousand, and the first ones tell modules apart.
MAX_PARTS = 30

OUTPUT = Path(__file__).parent.parent / "worker" / "start.ld"

SKILL = """
apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: plain}
spec: {problem: {statement: Answer questions about orders.}, role: {name: Support Agent, persona: Friendly and precise.}}
"""

HEADER = """/* Places the modules that a start uses next to each other: Linux maps 64 KiB around each function that runs. A module of the program that
   is missing here costs only memory. Written by hack/start-order.py. */
SECTIONS
{
  .text.start :
  {
"""
FOOTER = """  }
}
INSERT BEFORE .text;
"""


def main(program: str) -> None:
    sizes = functions(program)
    used = {name for name in traced(program) if name in sizes}
    root = Module()
    for name, size in sizes.items():
        root.add(parts(name), size, name in used)
    patterns = sorted(root.smallest("")[1])
    OUTPUT.write_text(HEADER + "".join(f"    *(.text*.{pattern}*)\n" for pattern in patterns) + FOOTER)
    print(f"{len(used)} of {len(sizes)} functions run; {OUTPUT.name} has {len(patterns)} lines")


class Module:
    """A prefix of names of functions: their size in bytes, and the longer prefixes."""

    def __init__(self) -> None:
        self.size, self.runs, self.inner = 0, False, {}

    def add(self, rest: list[str], size: int, runs: bool) -> None:
        self.size += size
        self.runs |= runs
        if rest:
            self.inner.setdefault(rest[0], Module()).add(rest[1:], size, runs)

    def smallest(self, prefix: str) -> tuple[int, list[str]]:
        """Returns the patterns that contain each function that runs, and their cost."""
        if not self.runs:
            return 0, []
        whole = self.size + BYTES_FOR_A_LINE, [prefix]
        if not self.inner:
            return whole
        inner = [module.smallest(prefix + part) for part, module in self.inner.items()]
        split = sum(cost for cost, _ in inner), [pattern for _, patterns in inner for pattern in patterns]
        return whole if prefix and whole[0] <= split[0] else split


def functions(program: str) -> dict[str, int]:
    """Returns the size of each function."""
    lines = subprocess.run(["nm", "--print-size", program], check=True, capture_output=True, text=True).stdout.splitlines()
    fields = [line.split(None, 3) for line in lines]
    return {field[3]: int(field[1], 16) for field in fields if len(field) == 4 and field[2] in "tT"}


def traced(program: str) -> set[str]:
    """Returns the functions that run until the model gets the first request."""
    with tempfile.TemporaryDirectory() as work, socket.create_server(("127.0.0.1", 0)) as model:
        (Path(work) / "skill.yaml").write_text(SKILL)
        url = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
        options = ["--goal", "say hello", "--skill", "./skill.yaml", "--memory", "memory", "--model", "gpt-5", "--model-url", url]
        command = ["valgrind", "--quiet", "--tool=callgrind", "--demangle=no", "--callgrind-out-file=calls", program, "run", *options]
        run = subprocess.Popen(command, cwd=work, env={"OPENAI_API_KEY": "none", "PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL)
        connection, _ = model.accept()
        connection.recv(1)
        for _ in range(2):
            run.send_signal(signal.SIGINT)
        run.wait()
        connection.close()
        calls = (Path(work) / "calls").read_text()
    return {re.sub(r"'\d+$", "", name) for name in re.findall(r"^c?fn=\(\d+\) (.*)$", calls, re.MULTILINE)}


def parts(name: str) -> list[str]:
    """Splits a name into modules, without the hash at its end. Lengths that depend on a hash or on generic types become `*`."""
    if not name.startswith("_ZN"):
        return ["_R"] if name.startswith("_R") else [name]
    name, found = re.sub(r"17h[0-9a-f]{16}E$", "", name)[3:], ["_ZN"]
    while length := re.match(r"\d+", name):
        end = length.end() + int(length.group())
        first, *rest = [part for part in re.split(r"(?<=\.\.)|(?<=\$GT\$)|(?<=\$u20\$)|(?<=\$LT\$)", name[length.end() : end]) if part]
        found += [("*" if "$" in name[length.end() : end] else length.group()) + first, *rest]
        name = name[end:]
    return (found + [name] * bool(name))[:MAX_PARTS]


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
