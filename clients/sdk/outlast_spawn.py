"""A plugin of pytest that puts our `spawn` where pexpect's own tests look for it."""

import sys

import pexpect
import pexpect.pty_spawn
import pexpect.replwrap
from outlast.pexpect import close_all, spawn

pexpect.spawn = sys.modules["pexpect.run"].spawn = spawn


def spawnu(*args, **kwargs):
    kwargs.setdefault("encoding", "utf-8")
    return spawn(*args, **kwargs)


pexpect.spawnu = spawnu


def pytest_sessionfinish(session):
    close_all()
