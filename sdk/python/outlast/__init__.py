"""Outlast: commands as jobs that go on when the call, the agent or the terminal ends.

    import asyncio
    from outlast import Outlast, Pattern, Exit

    async def main():
        async with Outlast() as outlast:
            async with outlast.run("npm run dev") as job:      # ended when the block is left
                await job.wait(Pattern(r"ready in \\d+"), Exit(), deadline=60)

    asyncio.run(main())

The same without asyncio is in :mod:`outlast.sync`.
"""

from ._client import Job, Outlast, Shell, Starting
from ._errors import ConnectionLost, OutlastError
from ._types import (
    AwaitingInput,
    Condition,
    Event,
    Exit,
    Gone,
    Http,
    JobInfo,
    Lines,
    Match,
    Output,
    Pattern,
    Port,
    Quiet,
    Receipt,
    Screen,
    Sent,
    Stable,
    Step,
    Text,
    Waited,
)

__version__ = "@VERSION@"

__all__ = [
    "AwaitingInput",
    "Condition",
    "ConnectionLost",
    "Event",
    "Exit",
    "Gone",
    "Http",
    "Job",
    "JobInfo",
    "Lines",
    "Match",
    "Outlast",
    "OutlastError",
    "Output",
    "Pattern",
    "Port",
    "Quiet",
    "Receipt",
    "Screen",
    "Sent",
    "Shell",
    "Stable",
    "Starting",
    "Step",
    "Text",
    "Waited",
]
