"""Fixtures for SWE-ReX's own tests: the runtime that they ask for is ours."""

import pytest_asyncio
from outlast.swerex import OutlastRuntime
from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest


class _Action(BashAction):
    timeout: "float | None" = 60


class _Command(Command):
    timeout: "float | None" = 60


@pytest_asyncio.fixture
async def remote_runtime():
    runtime = OutlastRuntime()
    yield runtime
    await runtime.close()


@pytest_asyncio.fixture
async def runtime_with_default_session(remote_runtime):
    await remote_runtime.create_session(CreateBashSessionRequest())
    yield remote_runtime
