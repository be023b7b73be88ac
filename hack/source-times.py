"""Gives each tracked file whose content is that of the last run the time that it had then, and each other file the time of now.

Cargo compiles what is newer than its result, and in a fresh checkout everything is newer. `RECORD` is a file beside the results that
only this script writes. It has the digest and the time of each file. Nothing may compile there but after a run of this script.

Usage: source-times.py RECORD
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path


def main(record: Path) -> None:
    try:
        before = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        before = {}
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    files = [Path(name) for name in listed.split("\0") if name]
    now = {str(file): restored(file, before.get(str(file))) for file in files if file.is_file() and not file.is_symlink()}
    changed = sum(now[name][0] != before.get(name, [None])[0] for name in now)
    print(f"{changed} of {len(now)} files differ from those of the last run")
    new = record.with_suffix(".new")
    new.write_text(json.dumps(now))
    new.replace(record)


def restored(file: Path, known: list | None) -> list:
    """Sets the time of a file. Returns its digest and its time, in nanoseconds."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if known and known[0] == digest:
        os.utime(file, ns=(known[1], known[1]))
    else:
        os.utime(file)
    return [digest, file.stat().st_mtime_ns]


main(Path(sys.argv[1]))
