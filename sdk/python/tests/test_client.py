"""The client with real jobs."""

import asyncio
import os
import signal
import time
import unittest

from outlast import AwaitingInput, ConnectionLost, Exit, Outlast, OutlastError, Output, Pattern, Port, Quiet
from outlast import sync

from . import sealed_home

#: Longer than anything takes on a busy machine.
LIMIT = 90


class Client(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # It would tell of every moment in which a busy machine was slow.
        asyncio.get_running_loop().set_debug(False)
        self._sealed = sealed_home()
        self.outlast = await Outlast(home=self._sealed.__enter__()).__aenter__()

    async def asyncTearDown(self):
        for job in await self.outlast.jobs(running=True):
            await (await self.outlast.find(job.handle)).kill(grace=0.1)
        await self.outlast.close()
        self._sealed.__exit__(None, None, None)

    async def test_a_job_says_how_it_ended_and_what_it_printed(self):
        job = await self.outlast.run("echo hello; exit 3", name="first", description="a test")
        receipt = await job.result(LIMIT)
        self.assertEqual((receipt.code, receipt.signal, receipt.ended_by, receipt.ok), (3, None, "itself", False))
        self.assertEqual(str(await job.output()), "hello\n")
        self.assertEqual(await job.read_bytes(), b"hello\r\n")
        info = await (await self.outlast.find("first")).info()
        self.assertEqual((info.handle, info.state, info.running), (str(job.handle), "failed", False))

    async def test_a_block_ends_what_it_started(self):
        async with self.outlast.run("sleep 600") as job:
            self.assertIsNone(await job.receipt())
        receipt = await job.result(LIMIT)
        self.assertEqual(receipt.ended_by, "kill")

    async def test_waits_come_back_for_each_condition(self):
        job = await self.outlast.run("echo ready 42; read x; echo got $x; python3 -m http.server 0")
        waited = await job.wait(Pattern(r"ready (\d+)"), start=0, deadline=LIMIT)
        self.assertEqual((waited.reason, waited.match.groups), ("pattern", ("42",)))
        waited = await job.wait(AwaitingInput(), start=0, deadline=LIMIT)
        self.assertEqual(waited.reason, "awaiting_input")
        waited = await job.wait(Output(), deadline=0.05)
        self.assertTrue(waited.timed_out)
        sent = await job.send("you\n")
        waited = await job.wait(Pattern("got you"), start=sent.offset, deadline=LIMIT)
        self.assertEqual(waited.match.text, "got you")
        waited = await job.wait(Port(), deadline=LIMIT)
        self.assertGreater(waited.port, 0)
        self.assertEqual((await job.wait(Quiet(0.2), deadline=LIMIT)).reason, "quiet")
        await job.kill(grace=0.1)
        self.assertTrue((await job.wait(deadline=LIMIT)).ended)

    async def test_run_until_waits_from_the_first_byte_on(self):
        job = await self.outlast.run("echo early; sleep 600", until=[Pattern("early")], deadline=LIMIT)
        self.assertEqual(job.waited.match.text, "early")

    async def test_a_repl_is_asked_and_its_screen_seen(self):
        job = await self.outlast.run(["python3", "-q"], size=(60, 10))
        await job.wait(AwaitingInput(), start=0, deadline=LIMIT)
        self.assertIn("42", await job.ask("6 * 7", deadline=LIMIT))
        screen = await job.screen()
        self.assertEqual(screen.size, (60, 10))
        self.assertIn("42", screen.rows)
        await job.resize(70, 12)
        self.assertEqual((await job.screen()).size, (70, 12))
        await job.send(keys=["Ctrl-D"])
        self.assertEqual((await job.result(LIMIT)).code, 0)

    async def test_the_first_of_several_ends_a_wait(self):
        slow, fast = await self.outlast.run("sleep 600"), await self.outlast.run("echo x")
        job, waited = await self.outlast.wait_any([slow, fast], deadline=LIMIT)
        self.assertIs(job, fast)
        self.assertTrue(waited.ended)

    async def test_output_is_followed_to_its_last_byte(self):
        job = await self.outlast.run("seq 1 50000", pipes=True)
        data = b"".join([piece async for piece in job.follow()])
        self.assertEqual(data, b"".join(b"%d\n" % n for n in range(1, 50001)))

    async def test_stderr_is_apart_in_pipes(self):
        job = await self.outlast.run("echo out; echo err >&2", pipes=True)
        await job.result(LIMIT)
        self.assertEqual((await job.read_bytes(), await job.read_bytes(stderr=True)), (b"out\n", b"err\n"))

    async def test_events_of_a_job_come_until_it_is_over(self):
        job = await self.outlast.run("read x; exit 4")
        await job.wait(AwaitingInput(), start=0, deadline=LIMIT)
        events = job.events()
        first = asyncio.ensure_future(events.__anext__())
        # Not before it listens: an event that came earlier is not told again.
        await asyncio.sleep(0.2)
        await job.send("\n")
        kinds = [(await asyncio.wait_for(first, LIMIT)).kind]
        kinds += [event.kind async for event in events]
        self.assertEqual(kinds[-1], "exit")

    async def test_a_failure_has_a_kind_and_says_what_to_do(self):
        with self.assertRaises(OutlastError) as caught:
            await self.outlast.find("nobody")
        self.assertEqual(caught.exception.kind, "no_such_job")
        self.assertTrue(caught.exception.hint)

    async def test_a_wait_that_is_cancelled_is_given_up(self):
        job = await self.outlast.run("sleep 600")
        waiting = asyncio.ensure_future(job.wait(Exit()))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        self.assertEqual(self.outlast._connections[0].open_streams, 0)
        self.assertIsNone(await job.receipt())

    async def test_a_shell_remembers_and_says_how_each_command_ended(self):
        shell = self.outlast.shell("main")
        first = await shell.run("cd / && greeting=hello; (exit 7)", deadline=LIMIT)
        self.assertEqual((first.code, first.folder, first.ok), (7, "/", False))
        second = await self.outlast.shell("main").run('echo "$greeting from $PWD"', deadline=LIMIT)
        self.assertEqual((second.code, second.output), (0, "hello from /\n"))
        asks = await shell.run("read x; echo got $x", AwaitingInput(), deadline=LIMIT)
        self.assertEqual((asks.waited.reason, asks.state), ("awaiting_input", "running"))
        await (await shell.job()).send("you\n")
        self.assertEqual((await shell.run("exit 3", deadline=LIMIT)).code, 3)
        self.assertEqual((await shell.run("echo anew", deadline=LIMIT)).output, "anew\n")

    async def test_jobs_outlast_a_relay_that_dies(self):
        job = await self.outlast.run("sleep 600")
        os.kill(self.outlast._connections[0]._process.pid, signal.SIGKILL)
        with self.assertRaises(ConnectionLost):
            await job.wait(Exit())
        self.assertTrue((await job.info()).running)

    async def test_hundreds_of_calls_at_once_share_one_relay(self):
        job = await self.outlast.run("echo x")
        await job.result(LIMIT)
        began = time.process_time()
        ends = await asyncio.gather(*(job.end() for _ in range(500)))
        used = time.process_time() - began
        self.assertEqual(set(ends), {3})
        self.assertEqual(len(self.outlast._connections), 1)
        # A millisecond of our own CPU time a call; on any machine it is a fraction of it.
        self.assertLess(used, 0.5 * 4)


class Blocking(unittest.TestCase):
    def test_the_blocking_face_does_the_same(self):
        with sealed_home() as home, sync.Outlast(home=home) as outlast:
            with outlast.run("cat") as job:
                job.wait(sync.AwaitingInput(), start=0, deadline=LIMIT)
                job.send_line("hello")
                self.assertEqual(job.wait(Pattern("hello\\s+hello"), start=0, deadline=LIMIT).reason, "pattern")
            self.assertEqual(job.result(LIMIT).ended_by, "kill")
            self.assertEqual([one.handle for one in outlast.jobs()], [str(job.handle)])


if __name__ == "__main__":
    unittest.main()
