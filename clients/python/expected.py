"""Says which checks of a conformance run failed that the baseline does not name: expected.py BASELINE RESULTS

The suite's own baseline goes by scenario, which would hide a new failure inside a listed one.
"""

import json
import pathlib
import re
import sys

baseline, results = map(pathlib.Path, sys.argv[1:])
expected = {}
for name, checks in re.findall(r"^  - (\S+) # \[([^\]]*)\]", baseline.read_text(), re.MULTILINE):
    expected[name] = set(checks.split())
unexpected = []
seen = 0
for file in sorted(results.rglob("checks.json")):
    name = re.sub(r"^server-(.*?)-\d{4}-\d\d-\d\dT.*$", r"\1", file.parent.name)
    for check in json.loads(file.read_text()):
        seen += 1
        if check["status"] in ("FAILURE", "WARNING") and check["id"] not in expected.get(name, ()):
            unexpected.append(f"{name}/{check['id']}")
if not seen:
    unexpected.append("no results")
print(", ".join(unexpected))
sys.exit(bool(unexpected))
