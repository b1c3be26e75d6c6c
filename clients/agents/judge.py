"""Says whether the five results that the scripted model was given are what a job must answer: judge.py RESULTS"""

import json
import re
import sys

WANTED = [
    ("start", r"Proceed\?"),
    ("answer", r"got y"),
    ("wait", r"READY"),
    ("list", r"Proceed|read -r"),
    ("kill", r"SIGTERM"),
]
lines = open(sys.argv[1]).read().splitlines()[1:]
results = {line["result"]: line["text"] for line in map(json.loads, lines) if "result" in line}
for index, (name, pattern) in enumerate(WANTED):
    text = results.get(index)
    if text is None:
        print(f"no result for {name}")
        sys.exit(1)
    if not re.search(pattern, text) or "error (" in text:
        print(f"{name} answered {text[:300]!r}")
        sys.exit(1)
print("started, answered, waited, listed, killed")
