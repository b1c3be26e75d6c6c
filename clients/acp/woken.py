"""Judges a conversation with the sidecar from both sides of it, as `outlast --json acp tap --show` tells them.

    woken.py EDITOR_SIDE AGENT_SIDE            exit code 0 and one line if the agent was woken by its job's end, once
    woken.py EDITOR_SIDE AGENT_SIDE loaded     the same for a session that another sidecar was killed in
    woken.py EDITOR_SIDE AGENT_SIDE stopped    if it was woken three times in a row, and the user told that this is all
"""

import json
import sys

editor, agent = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])


def check(good, what):
    if not good:
        print(what)
        sys.exit(1)


def prompts(wire):
    return [message for message in wire if message.get("method") == "session/prompt"]


def updates(wire, kind):
    return [message for message in wire if (message.get("update") or {}).get("update") == kind]


def told_once(prompts):
    check(len(prompts) == 1, f"the agent was told {len(prompts)} times")
    text = prompts[0]["text"]
    check(text.startswith("[outlast events 1-1 of ") and "exit code 3" in text, f"it was told {text!r}")
    injected = [message for message in updates(editor, "user_message_chunk") if message["update"]["meta"]]
    check(len(injected) == 1, f"the user was shown {len(injected)} injected prompts")
    said = [message["update"]["text"] for message in updates(editor, "agent_message_chunk") if message["ms"] > injected[0]["ms"]]
    check(any("DONE" in text for text in said), f"after it, the agent said {said}")


if sys.argv[3:] == ["stopped"]:
    told = [message for message in prompts(agent) if message["text"].startswith("[outlast events ")]
    check(len(told) == 3, f"the agent was woken {len(told)} times")
    notices = [message for message in updates(editor, "agent_message_chunk") if "does not wake the agent any more" in message["update"]["text"]]
    check(len(notices) == 1, f"the user was told {len(notices)} times")
    print("a job for every event: stopped after three turns in a row, and the user told")
    sys.exit(0)
if sys.argv[3:]:
    told_once(prompts(agent))
    print("the job ended while no sidecar was there; the next one told the agent, once")
    sys.exit(0)
check(len(prompts(editor)) == 1, f"the editor prompted {len(prompts(editor))} times")
# The agent's own call, which the editor sees end only with the job.
calls = [message["update"]["tool_call"] for message in editor if (message.get("update") or {}).get("stream")]
check(len(set(calls)) == 1 and not calls[0].startswith("outlast-job-"), f"the lines came on {set(calls)}")
job = [message for message in editor if (message.get("update") or {}).get("tool_call") == calls[0]]
ticks = [message["update"]["text"] for message in job if message["update"]["stream"]]
check("\n".join(ticks) == "TICK:1\nTICK:2\nTICK:3", f"the editor saw {ticks}")
ends = [message for message in job if message["update"]["status"] in ("completed", "failed")]
check(len(ends) == 1, f"the call ended {len(ends)} times")
check(job[-1]["update"]["status"] == "failed", f"the job ended as {job[-1]['update']['status']}")
told = prompts(agent)
check(len(told) == 2, f"the agent was prompted {len(told)} times")
told_once(told[1:])
answers = {message["id"]: message["ms"] for message in agent if message["kind"] == "response" and message["from"] == "agent"}
check(told[1]["id"] in answers, "it did not answer")
check(answers[told[0]["id"]] < told[1]["ms"], "it was prompted while it worked")
wake = told[1]["ms"] - answers[told[0]["id"]]
print(f"job shown live on the agent's own call, turn ended, woken once by its end ({wake / 1000:.1f} s after the turn), answered in {(answers[told[1]['id']] - told[1]['ms']) / 1000:.1f} s")
