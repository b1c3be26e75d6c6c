"""Inspect's own checks of a sandbox provider, with ours as the provider, and a whole evaluation with a scripted model."""

import os

import pytest
import pytest_asyncio
from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import solver
from inspect_ai.util import sandbox
from inspect_ai.util._sandbox.self_check import *  # noqa: F403
from outlast.inspect import OutlastSandboxEnvironment

# Root reads and writes every file; and no user is added to the machine that the check runs on.
EXPECTED = {"test_exec_as_user"}
if os.geteuid() == 0:
    EXPECTED |= {
        "test_read_file_not_allowed",
        "test_write_text_file_without_permissions",
        "test_write_binary_file_without_permissions",
    }


@pytest_asyncio.fixture
async def sandbox_env(request):
    if request.node.originalname in EXPECTED:
        pytest.skip("expected, see above")
    environments = await OutlastSandboxEnvironment.sample_init("self check", None, {})
    yield environments["default"]
    await OutlastSandboxEnvironment.sample_cleanup("self check", None, environments, False)


@solver
def look():
    async def solve(state, generate):
        await sandbox().write_file("note", "forty-two")
        state.output.completion = (await sandbox().exec(["cat", "note"])).stdout
        return state

    return solve


async def test_an_evaluation_uses_the_provider_by_its_name():
    task = Task(dataset=[Sample(input="read it", target="forty-two")], solver=look(), scorer=includes(), sandbox="outlast")
    logs = await eval_async(task, model="mockllm/model", log_dir="logs")
    assert logs[0].status == "success", logs[0].error
    assert logs[0].results.scores[0].metrics["accuracy"].value == 1.0
