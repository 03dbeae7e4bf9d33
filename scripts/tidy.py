"""Runs clang-tidy on the files named on standard input.

    tidy.py BUILD_FOLDER JOBS

A public header is checked through the unit that CMake makes for it alone
(VERIFY_INTERFACE_HEADER_SETS). Files that the compile database doesn't know,
private headers and a test's data say, are left to the units that read them.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

TOOL = "clang-tidy-14"


def load_database(build):
    """Maps each file of the project to its entry in the compile database."""
    root = pathlib.Path.cwd()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        header = re.search(r"_verify_interface_header_sets/(.*)\.cxx$", str(path))
        if header:
            entries["include/" + header[1]] = entry
        elif path.is_relative_to(root):
            entries[str(path.relative_to(root))] = entry
    return entries


def find_entry(name, entries):
    if name in entries:
        return entries[name]
    public = re.search(r"include/tandem/.*\.h$", name)
    return entries.get(public[0]) if public else None


def key_of(entry):
    """A digest of everything of ours that the outcome depends on."""
    words = shlex.split(entry["command"])
    compiler = next(i for i, word in enumerate(words) if word.endswith("c++"))
    words = words[compiler:]
    listing = subprocess.run(
        [*words[: words.index("-o")], "-MM", entry["file"]],
        cwd=entry["directory"],
        capture_output=True,
        text=True,
    ).stdout
    digest = hashlib.sha256(shlex.join(words).encode())
    digest.update(pathlib.Path(".clang-tidy").read_bytes())
    base = pathlib.Path(entry["directory"])
    for name in shlex.split(listing.replace("\\\n", " "))[1:]:
        digest.update((base / name).read_bytes())
    return digest.hexdigest() if listing else None


def check(name, entry, build):
    """Returns the findings in one file, empty if there are none."""
    key = key_of(entry)
    stamp = build / "tidy" / (key or "none")
    if key and stamp.exists():
        return ""
    run = subprocess.run(
        [TOOL, "--quiet", "-p", str(build), entry["file"]],
        capture_output=True,
        text=True,
    )
    if run.returncode == 0:
        if key:
            stamp.parent.mkdir(exist_ok=True)
            stamp.touch()
        return ""
    return run.stdout or run.stderr


def main():
    build, jobs = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    entries = load_database(build)
    units = {}
    for name in sys.stdin.read().split("\n"):
        entry = find_entry(name, entries)
        if entry:
            units[entry["file"]] = (name, entry)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {
            pool.submit(check, name, entry, build): name
            for name, entry in units.values()
        }
        for run in concurrent.futures.as_completed(runs):
            findings = run.result()
            print(f"lint: {runs[run]}: {'FAILED' if findings else 'ok'}", flush=True)
            if findings:
                failed += 1
                print(findings, flush=True)
    print(f"lint: {len(units)} units checked, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
