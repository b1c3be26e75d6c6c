"""What every Python client must be able to do with the server: list, call, progress, cancel.

    checks.py mcp|fastmcp stdio PROGRAM
    checks.py mcp|fastmcp http URL TOKEN
"""

import asyncio
import sys
import traceback

TOOLS = {"run_shell_command", "send_input", "read_shell", "read_output", "wait_for", "jobs", "kill"}
LONG = {"command": "sleep 60", "description": "to be cancelled", "ai_callback_delay": 40}


def structured(result):
    for name in ("structured_content", "structuredContent"):
        if getattr(result, name, None) is not None:
            return getattr(result, name)
    raise AssertionError(f"no structured content: {result}")


class Mcp:
    """The official SDK."""

    @staticmethod
    def open(transport, place, token, mode):
        import mcp
        from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

        if transport == "stdio":
            import os

            server = mcp.StdioServerParameters(command=place, args=["mcp"], env=dict(os.environ))
        else:
            headers = {"Authorization": f"Bearer {token}"}
            server = streamable_http_client(place, http_client=create_mcp_http_client(headers=headers))
        return mcp.Client(server, mode=mode)

    @staticmethod
    async def tools(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    @staticmethod
    def call(client, name, arguments, on_progress=None):
        return client.call_tool(name, arguments, progress_callback=on_progress)


class FastMcp:
    """The other one."""

    @staticmethod
    def open(transport, place, token, mode):
        import os

        from fastmcp import Client
        from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

        if transport == "stdio":
            server = StdioTransport(command=place, args=["mcp"], env=dict(os.environ), keep_alive=False)
        else:
            server = StreamableHttpTransport(place, headers={"Authorization": f"Bearer {token}"})
        return Client(server, mode=mode)

    @staticmethod
    async def tools(client):
        return [tool.name for tool in await client.list_tools()]

    @staticmethod
    def call(client, name, arguments, on_progress=None):
        return client.call_tool(name, arguments, progress_handler=on_progress)


async def lists(kind, client):
    names = await kind.tools(client)
    assert set(names) == TOOLS, names


async def calls(kind, client):
    result = await kind.call(client, "run_shell_command", {"command": "echo hi; exit 3"})
    facts = structured(result)
    assert facts["exit_code"] == 3 and "hi" in facts["output"], facts
    assert "hi" in result.content[0].text, result


async def progresses(kind, client):
    heard = []

    async def on_progress(progress, total, message):
        heard.append(message)

    arguments = {"command": "sleep 4; echo slept", "ai_callback_delay": 20}
    facts = structured(await kind.call(client, "run_shell_command", arguments, on_progress))
    assert "slept" in facts["output"], facts
    assert len(heard) >= 2, heard


async def cancels(kind, client):
    call = asyncio.ensure_future(kind.call(client, "run_shell_command", dict(LONG)))
    await asyncio.sleep(1.5)
    call.cancel()
    try:
        await call
        raise AssertionError("the call was not cancelled")
    except asyncio.CancelledError:
        pass
    jobs = structured(await kind.call(client, "jobs", {}))["jobs"]
    running = [job for job in jobs if job.get("status") == "running"]
    assert len(running) == 1, jobs
    await kind.call(client, "kill", {"handle": str(running[0]["handle"])})


async def main():
    name, transport, place = sys.argv[1:4]
    token = sys.argv[4] if len(sys.argv) > 4 else None
    kind = {"mcp": Mcp, "fastmcp": FastMcp}[name]
    failed = False
    for mode in ("legacy", "auto"):
        for check in (lists, calls, progresses, cancels):
            label = f"python {name} {transport} {mode} {check.__name__}"
            try:
                async with asyncio.timeout(30):
                    async with kind.open(transport, place, token, mode) as client:
                        await check(kind, client)
                print(f"ok   {label}", flush=True)
            except BaseException as error:
                failed = True
                print(f"FAIL {label}: {type(error).__name__}: {error}", flush=True)
                traceback.print_exc()
    sys.exit(failed)


asyncio.run(main())
