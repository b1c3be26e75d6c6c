"""The examples of the guide run as they are."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from . import sealed_home

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [ROOT / "docs/guide/python.md", ROOT / "sdk/python/README.md"]


class Pages(unittest.TestCase):
    def test_every_example_runs_and_prints_what_the_page_says(self):
        count = 0
        for page in PAGES:
            text = page.read_text()
            # A block that prints is followed by one with what it prints.
            for code, said in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.S):
                count += 1
                with self.subTest(page=page.name, example=count), sealed_home() as home:
                    env = {**os.environ, "OUTLAST_HOME": home, "PYTHONPATH": str(ROOT / "sdk/python")}
                    ran = subprocess.run(
                        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
                    )
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    if said:
                        self.assertEqual(ran.stdout, said)
        self.assertGreaterEqual(count, 4)


if __name__ == "__main__":
    unittest.main()
