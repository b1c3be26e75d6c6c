"""Judges a watcher of thirty ticks that a real agent started behind the sidecar, from the wire between editor and sidecar.

    seed.py TAP.jsonl NAME [DOCS.md]      exit code 0 and one line if all is as it should be; adds the order on the wire to DOCS.md

The watcher is started in one turn and heard through two more prompts of the user, on the agent's own tool call.
"""

import json
import sys

TICKS = 30
records = [json.loads(line) for line in open(sys.argv[1])][1:]


def check(good, what):
    if not good:
        print(what)
        sys.exit(1)


def text(update):
    content = update.get("content") or [{}]
    return (content[0].get("content") or {}).get("text", "")


wire, rows = [], []
for record in records:
    message = record.get("message")
    if not isinstance(message, dict):
        continue
    update = message.get("params", {}).get("update") if message.get("method") == "session/update" else None
    wire.append((record["ms"], record["from"], message, update))

streamed = [(i, update) for i, (_, _, _, update) in enumerate(wire) if update and (update.get("_meta") or {}).get("gemini-cli/stream_output")]
calls = {update["toolCallId"] for _, update in streamed}
check(len(calls) == 1 and not calls.pop().startswith("outlast-job-"), "the lines did not come on the agent's own call")
check([text(update) for _, update in streamed] == [f"TICK:{n}" for n in range(1, TICKS + 1)], "not every line came once, in order")
check(all(update["status"] == "in_progress" for _, update in streamed), "a line came with another status")
check(len({update["_meta"]["pid"] for _, update in streamed}) == 1, "the pid changed")
call = streamed[0][1]["toolCallId"]
ends = [i for i, (_, _, _, update) in enumerate(wire) if update and update.get("toolCallId") == call and update.get("status") in ("completed", "failed")]
check(len(ends) == 1 and ends[0] > streamed[-1][0], "the call did not end once, after its last line")
last = [i for i, (_, _, _, update) in enumerate(wire) if update and update.get("toolCallId") == call][-1]
check(last == ends[0] and wire[last][3]["status"] == "completed", "something came after the end")
check(text(wire[last][3]).split("\n") == [f"TICK:{n}" for n in range(1, TICKS + 1)], "the final update has not all of it")
prompts = [i for i, (_, sender, message, _) in enumerate(wire) if sender == "client" and message.get("method") == "session/prompt"]
check(len(prompts) == 3, f"the user prompted {len(prompts)} times")
between = [sum(a < i < b for i, _ in streamed) for a, b in zip(prompts, prompts[1:] + [len(wire)])]
check(all(between), f"ticks after each prompt: {between}")
woken = [i for i, (_, _, _, update) in enumerate(wire) if update and (update.get("_meta") or {}).get("outlast.dev/injected")]
check(woken, "the agent was never woken")

if sys.argv[3:]:
    def row(ms, who, what):
        rows.append(f"    {ms:8.0f} {who} {what}")

    short = call if len(call) < 24 else "…" + call[-20:]
    burst = []

    def flush():
        if burst:
            first, final = burst[0], burst[-1]
            what = text(first[1]) if first is final else f"{text(first[1])} .. {text(final[1])}"
            meta = '_meta {"gemini-cli/stream_output": true, "pid": %d}' % first[1]["_meta"]["pid"]
            row(first[0], "<A", f"tool_call_update {short} in_progress {what}   {meta}")
            burst.clear()

    for ms, sender, message, update in wire:
        meta = (update or {}).get("_meta") or {}
        if meta.get("gemini-cli/stream_output"):
            burst.append((ms, update))
            continue
        if sender == "client" and message.get("method") == "session/prompt":
            flush()
            row(ms, "C>", f"session/prompt id={message['id']}   {message['params']['prompt'][0]['text']}")
        elif "stopReason" in (message.get("result") or {}):
            flush()
            row(ms, "<A", f"result id={message['id']} {message['result']['stopReason']}")
        elif update and update.get("toolCallId") == call:
            flush()
            said = text(update).split("\n")
            row(ms, "<A", f"{update['sessionUpdate']} {short} {update.get('status', '')} {said[0]}{' …' if len(said) > 1 else ''}")
        elif meta.get("outlast.dev/injected"):
            flush()
            told = [line.strip() for line in text({"content": [{"content": update["content"]}]}).split("\n") if line.startswith(("- ", "    "))]
            listed = " | ".join(told)
            row(ms, "<A", f"user_message_chunk, what the agent is told: {listed[:150]}{' …' if len(listed) > 150 else ''}")
    flush()
    with open(sys.argv[3], "a") as docs:
        docs.write(f"\n## {sys.argv[2]}\n\n" + "\n".join(rows) + "\n")
print(f"{TICKS} ticks on the agent's own call, {between[0]}, {between[1]} and {between[2]} after the three prompts, completed after the last; woken {len(woken)} times")
