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

from . import _types
from ._client import Job, Outlast, Shell, Starting
from ._errors import ConnectionLost, OutlastError
from ._types import *

__version__ = "@VERSION@"

__all__ = ["ConnectionLost", "Job", "Outlast", "OutlastError", "Shell", "Starting"]
__all__ += _types.__all__
