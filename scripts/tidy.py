"""Runs clang-tidy on the files named on standard input, or on everything.

    tidy.py BUILD_FOLDER JOBS [--all]

For a public header CMake makes a unit that reads it alone
(VERIFY_INTERFACE_HEADER_SETS). Where a source file of the same stem reads the
header too, clang-tidy is left to that one, and the unit is only compiled. Files
that the compile database doesn't know, private headers say, are left to the
units that read them. With --all that is every unit of the database, which may
have unity units; public headers are then only compiled.
"""

import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

# As scripts/setup.sh --with-lint installs it; the script in its bin/ would break
# if the checkout moved.
TOOL = str(
    next(
        pathlib.Path.cwd().glob(
            ".deps/lint/lib/python3*/site-packages/clang_tidy/data/bin/clang-tidy"
        )
    )
)


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


@functools.cache
def tool_version():
    return subprocess.run([TOOL, "--version"], capture_output=True, text=True).stdout


def find_entry(name, entries):
    if name in entries:
        return entries[name]
    public = re.search(r"include/tandem/.*\.h$", name)
    return entries.get(public[0]) if public else None


def compiler_words(entry):
    """The compiler and its flags, without launcher and output."""
    words = shlex.split(entry["command"])
    start = next(i for i, word in enumerate(words) if word.endswith("c++"))
    return words[start : words.index("-o")]


def key_of(entry, tool):
    """A digest of everything of ours that the outcome depends on."""
    words = compiler_words(entry)
    listing = subprocess.run(
        [*words, "-MM", entry["file"]],
        cwd=entry["directory"],
        capture_output=True,
        text=True,
    ).stdout
    digest = hashlib.sha256(shlex.join([tool, *words]).encode())
    digest.update(pathlib.Path(".clang-tidy").read_bytes())
    base = pathlib.Path(entry["directory"])
    for name in shlex.split(listing.replace("\\\n", " "))[1:]:
        digest.update((base / name).read_bytes())
    return digest.hexdigest() if listing else None


def check(entry, build, only_compile):
    """Returns the findings in one unit, empty if there are none."""
    key = key_of(entry, "compile" if only_compile else tool_version())
    stamp = build / "tidy" / (key or "none")
    if key and stamp.exists():
        return ""
    if only_compile:
        command = [*compiler_words(entry), "-fsyntax-only", entry["file"]]
    else:
        command = [TOOL, "--quiet", "-p", str(build), entry["file"]]
    run = subprocess.run(
        command, cwd=entry["directory"], capture_output=True, text=True
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
    everything = "--all" in sys.argv
    units = {}
    for name in entries if everything else sys.stdin.read().split("\n"):
        entry = find_entry(name, entries)
        if entry:
            units[entry["file"]] = (name, entry)
    stems = {pathlib.Path(name).stem for name in entries if name.endswith(".cpp")}

    def only_compile(name):
        path = pathlib.Path(name)
        return path.suffix == ".h" and (everything or path.stem in stems)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {
            pool.submit(check, entry, build, only_compile(name)): name
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
