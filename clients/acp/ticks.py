"""The Python SDK as an editor: a watcher started in one turn, two more prompts while it ticks.

    ticks.py WATCHER AGENT...      prints what its handlers got: COUNT ticks, the last status
"""

import asyncio
import os
import sys

import acp
from acp.schema import DeniedOutcome, RequestPermissionResponse


class Editor(acp.Client):
    def __init__(self):
        self.ticks = 0
        self.ended = asyncio.get_running_loop().create_future()

    async def session_update(self, session_id, update, **kwargs):
        if getattr(update, "tool_call_id", None) != "job-1" or update.session_update != "tool_call_update":
            return
        if (update.field_meta or {}).get("outlast.dev/stream_output"):
            self.ticks += 1
        if update.status in ("completed", "failed"):
            self.ended.set_result(update.status)

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def main(watcher, program, *args):
    editor = Editor()
    async with acp.spawn_agent_process(editor, program, *args, env=dict(os.environ)) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = (await agent.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id

        async def prompt(text):
            return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])

        async def heard(count):
            while editor.ticks < count:
                await asyncio.sleep(0.05)

        await prompt(watcher)
        await heard(2)
        await prompt("echo a haiku")
        await heard(9)
        third = asyncio.create_task(prompt("sleep 300"))
        await asyncio.sleep(0.5)
        await agent.cancel(session_id=session)
        stop_reason = (await third).stop_reason
        status = await editor.ended
        await prompt("/kill 3")
        print(f"{editor.ticks} ticks, {status}, third turn {stop_reason}")


asyncio.run(main(*sys.argv[1:]))
