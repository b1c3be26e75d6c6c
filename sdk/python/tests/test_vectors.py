"""The relay's conformance vectors."""

import asyncio
import json
import pathlib
import unittest

from outlast._connection import find_program
from outlast._frames import Decoder, FrameError, Message, encode

from . import sealed_home

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "crates/remote/tests/vectors"


def vectors(name):
    return json.loads((VECTORS / name).read_text())


def message(one):
    repeat = one.get("body_repeat")
    body = repeat["before"] + repeat["unit"] * repeat["times"] + repeat["after"] if repeat else one["body"]
    return Message(one["stream"], one["kind"], body.encode())


def data(one):
    if "hex" in one:
        return bytes.fromhex(one["hex"])
    return bytes.fromhex(one["repeat"]["hex"]) * one["repeat"]["times"]


def decoded(decoder, raw, piece):
    return [one for at in range(0, len(raw), piece) for one in decoder.push(raw[at : at + piece])]


class Frames(unittest.TestCase):
    def test_messages_encode_to_the_bytes_of_the_vectors_and_back(self):
        for one in vectors("frames.json")["encode"]:
            wanted = message(one)
            raw = encode(*wanted)
            if "hex" in one:
                self.assertEqual(raw.hex(), one["hex"])
            for piece in (1, 7, len(raw)):
                if len(raw) < 1 << 20 or piece > 7:
                    self.assertEqual(decoded(Decoder(awaits_marker=False), raw, piece), [wanted])

    def test_what_must_be_skipped_is_skipped_and_what_cannot_be_read_is_refused(self):
        both = vectors("frames.json")
        for one in both["skip"]:
            wanted = [message(each) for each in one["messages"]]
            for piece in (1, 1000):
                found = decoded(Decoder(awaits_marker=one.get("from") == "relay"), data(one), piece)
                self.assertEqual(found, wanted, one["what"])
        for one in both["refuse"]:
            with self.assertRaises(FrameError, msg=one["what"]):
                decoded(Decoder(awaits_marker=one.get("from") == "relay"), data(one), 1000)


def filled(value, names):
    """A message with what was found before."""
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) and value.startswith("$") else value


def matches(wanted, found, names):
    """Whether all that is wanted is there; names take what they find."""
    if isinstance(wanted, str) and wanted.startswith("$"):
        return names.setdefault(wanted, found) == found
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return False
        return all(key in found and matches(each, found[key], names) for key, each in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(wanted) == len(found) and all(map(lambda w, f: matches(w, f, names), wanted, found))
    return wanted == found


class Dialogue(unittest.IsolatedAsyncioTestCase):
    async def test_a_real_relay_holds_the_dialogue_of_the_vectors(self):
        with sealed_home() as home:
            process = await asyncio.create_subprocess_exec(
                find_program(), "--home", home, "relay",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            decoder, heard, names = Decoder(), [], {}

            async def hear():
                data = await asyncio.wait_for(process.stdout.read(1 << 16), 90)
                self.assertTrue(data, "the relay has ended")
                heard.extend(decoder.push(data))

            for step in vectors("dialogue.json")["steps"]:
                say = filled(step["say"], names)
                if say is not None:
                    process.stdin.write(encode(say["stream"], say["kind"], json.dumps(say["body"]).encode()))
                for wanted in step["expect"]:
                    while True:
                        at = next((n for n, one in enumerate(heard) if one.stream == wanted["stream"]), None)
                        if at is None:
                            await hear()
                            continue
                        one = heard.pop(at)
                        found = {"stream": one.stream, "kind": one.kind, "body": json.loads(one.body or b"null")}
                        if matches({key: wanted[key] for key in ("stream", "kind", "body")}, found, names):
                            break
                        self.assertTrue(wanted.get("others_before"), f"{wanted}, not {found}")
            process.stdin.close()
            self.assertEqual(await asyncio.wait_for(process.wait(), 60), 0)


if __name__ == "__main__":
    unittest.main()
