"""Remote files on servers that misbehave: each ends in the right bytes or an error, never in a mixture or a hang.

    test_faults.py BUILD
"""
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

from fault_server import Server

BUILD = os.path.abspath(sys.argv.pop(1))
COFFER = os.path.join(BUILD, "coffer")
SMALL, LARGE = "small.npy", "large.npy"


def npy(count):
    """Bytes of an .npy file with `count` doubles."""
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % count
    header += " " * (-(len(header) + 11) % 64) + "\n"
    body = b"".join((i * 7919 % 65536).to_bytes(2, "little") + b"\0\0\0\0\xf0\x3f" for i in range(count))
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + body


def safetensors(sizes):
    """Bytes of a .safetensors file with tensors t.0, t.1 … of these sizes."""
    header, body = {}, []
    for i, size in enumerate(sizes):
        begin = sum(map(len, body))
        header[f"t.{i}"] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [begin, begin + size]}
        body.append((1 + i).to_bytes(2, "little") * (size // 2))
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(body)


def coffer(*arguments, env=None, timeout=60):
    return subprocess.run([COFFER, *arguments], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


class Misbehaving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = {SMALL: npy(100), LARGE: npy(400_000)}
        cls.server = Server(cls.files)
        cls.local = os.path.join(cls.folder.name, LARGE)
        with open(cls.local, "wb") as file:
            file.write(cls.files[LARGE])

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    def reads_all(self, fault, **options):
        """The command computes the same from the server as from the disk."""
        expected = coffer("stats", "--json", self.local)
        found = coffer("stats", "--json", self.server.url(fault, LARGE), **options)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout.replace(self.server.url(fault, LARGE), self.local), expected.stdout)

    def fails(self, fault, words, name=LARGE, **options):
        result = coffer("stats", self.server.url(fault, name), **options)
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn(words, result.stderr)
        return result

    def test_a_healthy_server(self):
        self.reads_all("none")

    def test_connections_that_are_cut(self):
        self.reads_all("cut")

    def test_answers_of_503(self):
        self.reads_all("storm")

    def test_a_server_that_asks_to_wait(self):
        self.reads_all("wait")

    def test_slow_answers(self):
        self.reads_all("drip")

    def test_a_server_that_stays_busy(self):
        self.fails("always503", "HTTP 503")

    def test_a_server_that_never_answers(self):
        self.fails("no-answer", "gave up after 3 tries")

    def test_a_range_that_was_not_asked_for(self):
        self.fails("shifted", "another range")

    def test_a_whole_file_in_place_of_a_range(self):
        self.fails("whole", "no ranges")

    def test_a_server_without_ranges(self):
        result = self.fails("no-ranges", "no ranges")
        self.assertIn("--download", result.stderr)
        result = coffer("stats", "--download", self.server.url("no-ranges", LARGE))
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_file_that_is_replaced(self):
        for fault in ("changed", "lost-etag", "grown", "weak"):
            self.server.counts.clear()
            self.fails(fault, "was replaced while it was read")

    def test_a_server_that_compresses(self):
        self.fails("gzip", "compresses")

    def test_headers_that_make_no_sense(self):
        self.fails("nonsense", "Content-Range")
        self.fails("header", "header of more than")

    def test_a_size_that_cannot_be(self):
        result = coffer("info", self.server.url("huge", SMALL), timeout=20)
        self.assertNotEqual(result.returncode, -9)

    def test_redirects(self):
        self.reads_all("elsewhere")
        self.fails("loop", "without an end")
        self.fails("to-file", "not followed")

    def test_an_empty_file(self):
        result = coffer("info", self.server.url("empty", SMALL))
        self.assertEqual(result.returncode, coffer("info", os.devnull).returncode)
        self.assertIn("not recognized", result.stderr)

    def test_passwords_reach_the_server_and_nobody_else(self):
        url = self.server.url("locked", SMALL).replace("http://", "http://me:pwd@")
        result = coffer("stats", "--json", url)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("pwd", result.stdout + result.stderr)
        self.fails("locked", "does not let us read it", SMALL)
        moved = self.server.url("elsewhere", SMALL).replace("http://", "http://me:pwd@") + "?signature=s"
        self.server.requests.clear()
        result = coffer("stats", "--json", moved)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("signature", result.stdout)
        first, second = self.server.requests[:2]
        self.assertIn("Authorization", first[2])
        self.assertNotIn("Authorization", second[2])

    def test_only_the_bytes_that_are_needed(self):
        self.server.requests.clear()
        result = coffer("info", self.server.url("none", LARGE))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([r[1] for r in self.server.requests], ["bytes=0-65535"])

    def transferred(self):
        ranges = [r[1][len("bytes="):].split("-") for r in self.server.requests]
        return sum(int(last) - int(first) + 1 for first, last in ranges)

    def test_a_model_costs_few_round_trips_and_its_tensors_only_their_bytes(self):
        path = os.path.join(self.folder.name, "model")
        for count, size in ((1000, 4096), (20, 1 << 20)):
            with open(path + ".safetensors", "wb") as file:
                file.write(safetensors([size] * count))
            self.assertEqual(coffer("convert", "-f", path + ".safetensors", path + ".mcf").returncode, 0)
            for name in ("model.mcf", "model.safetensors"):
                with open(os.path.join(self.folder.name, name), "rb") as file:
                    self.files[name] = file.read()
                self.server.requests.clear()
                self.assertEqual(coffer("info", self.server.url("none", name)).returncode, 0)
                self.assertLessEqual(len(self.server.requests), 3)
                for verb, cache in ((["check", "--full"], "16M"), (["stats"], "64M")):
                    self.server.requests.clear()
                    result = coffer(*verb, self.server.url("none", name), env={"COFFER_CACHE": cache})
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertLessEqual(self.transferred(), 1.2 * len(self.files[name]))  # once, not twice
        for name in ("model.mcf", "model.safetensors"):
            opening = 65536 + 65536
            for tensor in (0, 7, 19):
                self.server.requests.clear()
                result = coffer("get", "-f", self.server.url("none", name), f"t.{tensor}", "-o", path + ".npy")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertLessEqual(self.transferred(), (1 << 20) + 65536 + opening)

    def test_a_sample_costs_its_bytes_and_little_more(self):
        archive, path = (os.path.join(self.folder.name, name) for name in ("set.tar", "set.mldf"))
        with tarfile.open(archive, "w") as tar:
            for i in range(40):
                member = tarfile.TarInfo(f"{i:02}.bin")
                member.size = 100_000
                tar.addfile(member, io.BytesIO(os.urandom(member.size)))
        result = coffer("pack", archive, path)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(path, "rb") as file:
            self.files["set.mldf"] = file.read()
        url = self.server.url("none", "set.mldf")
        self.server.requests.clear()
        self.assertEqual(coffer("info", url).returncode, 0)
        opening = self.transferred()
        self.server.requests.clear()
        result = coffer("get", "-f", url, "17.bin", "-o", os.path.join(self.folder.name, "sample"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLessEqual(self.transferred(), opening + 100_000 + 65536)

    def test_a_server_that_does_not_pin_its_files(self):
        result = coffer("info", "--json", self.server.url("unpinned", SMALL))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIs(json.loads(result.stdout)["pinned"], False)
        self.assertNotIn("pinned", json.loads(coffer("info", "--json", self.server.url("none", SMALL)).stdout))
        self.assertIn("neither an ETag nor a time of change", coffer("info", self.server.url("unpinned", SMALL)).stderr)

    def test_the_hub_and_its_other_host(self):
        hub = {"HF_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}/hub", "HF_HOME": self.folder.name}
        address = f"hf://organisation/model@v1/{LARGE}"
        refused = coffer("info", address, env=hub)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("HTTP 401", refused.stderr)
        self.assertIn("HF_TOKEN", refused.stderr)
        self.server.requests.clear()
        result = coffer("stats", "--json", address, env={**hub, "HF_TOKEN": "hf_secret"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.replace(address, self.local), coffer("stats", "--json", self.local).stdout)
        self.assertNotIn("hf_secret", result.stdout + result.stderr)
        self.assertEqual([r[0] for r in self.server.requests].count("hub"), 1)
        for fault, _, headers in self.server.requests:
            self.assertEqual("Authorization" in headers, fault == "hub", headers)

    def test_what_was_read_is_kept_on_disk(self):
        cache = os.path.join(self.folder.name, "cache")
        self.reads_all("none", env={"COFFER_CACHE_DIR": cache})
        self.server.requests.clear()
        self.reads_all("none", env={"COFFER_CACHE_DIR": cache})
        self.assertEqual(len(self.server.requests), 1)
        for name in os.listdir(cache):
            self.assertNotIn("large", name)
        blocks = [name for name in os.listdir(cache) if name.endswith(".blocks")][0]
        with open(os.path.join(cache, blocks), "r+b") as file:
            file.seek(1_000_000)
            file.write(b"damaged")
        self.reads_all("none", env={"COFFER_CACHE_DIR": cache})

    def test_a_cache_that_is_too_small_for_the_file(self):
        self.reads_all("none", env={"COFFER_CACHE": "1"})

    def test_outputs_are_local(self):
        result = coffer("convert", self.local, self.server.url("none", "out.csv"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("can be read, not written", result.stderr)


if __name__ == "__main__":
    unittest.main()
