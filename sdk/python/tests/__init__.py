"""What the tests share."""

import contextlib
import os
import shutil
import tempfile
import time


@contextlib.contextmanager
def sealed_home():
    """A folder for jobs that is gone afterwards. A keeper writes its last lines a moment after its job has ended."""
    folder = tempfile.mkdtemp(prefix="outlast-sdk-")
    try:
        yield os.path.join(folder, "jobs")
    finally:
        end = time.monotonic() + 60
        while os.path.exists(folder):
            shutil.rmtree(folder, ignore_errors=time.monotonic() < end)
