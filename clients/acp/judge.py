"""Judges the thirty ticks from what `outlast --json acp tap --show FILE` says, on standard input.

    judge.py TICKS      exit code 0 and one line if all is well, else what is wrong
"""

import json
import sys

ticks = int(sys.argv[1])
wire = [json.loads(line) for line in sys.stdin]
prompts = [i for i, message in enumerate(wire) if message.get("method") == "session/prompt"]
calls = [(i, message["update"], message["ms"]) for i, message in enumerate(wire)
         if message["from"] == "agent" and (message.get("update") or {}).get("tool_call") == "job-1"]


def check(good, what):
    if not good:
        print(what)
        sys.exit(1)


check(len(prompts) >= 3, f"{len(prompts)} prompts")
check(calls and calls[0][1]["update"] == "tool_call", "no tool call")
marked = [call for call in calls if call[1]["stream"]]
check(len(marked) == ticks, f"{len(marked)} marked updates, not {ticks}")
for number, (_, update, _) in enumerate(marked, 1):
    check(update["text"] == f"TICK:{number}", f"update {number} says {update['text']!r}")
    check(update["status"] == "in_progress", f"update {number} is {update['status']}")
    check(update["meta"]["gemini-cli/stream_output"] is True and update["meta"]["pid"], f"update {number} lacks its marks")
check(calls[-1][1]["status"] == "completed", f"it ends as {calls[-1][1]['status']}")
check(len(calls) == ticks + 2, f"{len(calls)} updates: something came besides the ticks and the end")
after = [sum(1 for i, *_ in marked if i > prompt) for prompt in prompts[:3]]
check(after[1] > 0 and after[2] > 0, f"ticks after each prompt: {after}")
turns = [(message["id"], wire[i]["ms"]) for i, message in enumerate(wire) if message.get("method") == "session/prompt"]
first_turn = next(m["ms"] for m in wire if m["kind"] == "response" and m["from"] == "agent" and m["id"] == turns[0][0])
out_of_turn = sum(1 for _, _, ms in marked if ms > first_turn)
seconds = (marked[-1][2] - marked[0][2]) / 1000
print(f"{ticks} ticks in {seconds:.1f} s, {out_of_turn} after their turn, {after[1]} after the second prompt, {after[2]} after the third; then completed")
