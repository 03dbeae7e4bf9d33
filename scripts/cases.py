"""Tells which of the cases that an issue names were covered by a test run.

    cases.py LIST BUILD_FOLDER JUNIT_FILE [--all]

LIST holds one id a line (tests/cases.txt). An id is covered if at least one
test with that label ran and none with it failed. Exits with 1 if an id is not
covered; prints those, or with --all every id.
"""

import collections
import json
import subprocess
import sys
import xml.etree.ElementTree


def read_list(path):
    with open(path, encoding="utf-8") as lines:
        words = [line.split("#")[0].strip() for line in lines]
    return [word for word in words if word]


def read_labels(build):
    """Maps each test's name to its labels."""
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    labels = {}
    for test in json.loads(listing)["tests"]:
        for entry in test.get("properties", []):
            if entry["name"] == "LABELS":
                labels[test["name"]] = entry["value"]
    return labels


def read_outcomes(junit):
    """Maps each test's name to passed, failed or not run."""
    words = {"run": "passed", "fail": "failed"}
    cases = xml.etree.ElementTree.parse(junit).iter("testcase")
    return {case.get("name"): words.get(case.get("status"), "not run") for case in cases}


def judge(outcomes):
    if "failed" in outcomes:
        return "failed"
    return "passed" if "passed" in outcomes else "not run"


def main():
    wanted, build, junit = sys.argv[1:4]
    labels = read_labels(build)
    by_id = collections.defaultdict(list)
    for name, outcome in read_outcomes(junit).items():
        for label in labels.get(name, []):
            by_id[label].append(outcome)
    verdicts = {case: judge(by_id[case]) for case in read_list(wanted)}
    missing = [case for case, verdict in verdicts.items() if verdict != "passed"]
    for case, verdict in verdicts.items():
        if "--all" in sys.argv or verdict != "passed":
            print(f"{case}\t{verdict}")
    print(f"cases: {len(verdicts) - len(missing)} of {len(verdicts)} passed")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
