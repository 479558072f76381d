"""coffer put to a server that misbehaves: test_put.py BUILD"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fault_s3 import Server

BUILD = os.path.abspath(sys.argv.pop(1))
COFFER = os.path.join(BUILD, "coffer")
PART = 5 << 20


class Put(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.data = bytes(range(256)) * (2 * PART // 256) + b"the end"
        cls.path = os.path.join(cls.folder.name, "file.bin")
        cls.small = os.path.join(cls.folder.name, "small.bin")
        with open(cls.small, "wb") as file:
            file.write(b"small")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        with open(self.path, "wb") as file:
            file.write(self.data)
        self.server = Server()
        self.cache = tempfile.mkdtemp(dir=self.folder.name)

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def command(self, *arguments):
        environment = {**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_port}",
                       "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "top-secret", "AWS_CONFIG_FILE": os.devnull,
                       "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "XDG_CACHE_HOME": self.cache}
        return [COFFER, "put", "--part-size", "5MiB", *arguments], environment

    def run_put(self, *arguments):
        command, environment = self.command(*arguments)
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        self.assertNotIn("top-secret", result.stdout + result.stderr)
        return result

    def put(self, bucket, *options, path=None):
        result = self.run_put("--json", *options, path or self.path, f"s3://{bucket}/key")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(path or self.path, "rb") as file:
            self.assertEqual(self.server.objects[bucket, "key"][0], file.read())
        self.assertEqual(self.server.uploads, {})
        self.assertEqual(self.states(), [])
        return json.loads(result.stdout)

    def fails(self, bucket, words, *options, path=None, code=3):
        result = self.run_put(*options, path or self.path, f"s3://{bucket}/key")
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertIn(words, result.stderr)
        return result

    def states(self):
        folder = os.path.join(self.cache, "coffer", "uploads")
        return os.listdir(folder) if os.path.isdir(folder) else []

    def sent(self, name):
        return [length for _, found, _, length in self.server.requests if found == name]

    def test_a_healthy_server_gets_parts_or_one_request(self):
        report = self.put("none")
        self.assertEqual((report["parts"], report["bytes_sent"], report["verified"]), (3, len(self.data), "sha256"))
        self.assertEqual(sorted(self.sent("PUT part")), [7, PART, PART])
        report = self.put("one", path=self.small)
        self.assertEqual((report["parts"], report["verified"]), (1, "sha256"))
        self.assertEqual(self.sent("PUT object"), [5])
        self.assertEqual(self.put("empty", path=os.devnull)["size"], 0)

    def test_connections_that_are_cut_and_answers_of_503(self):
        self.put("cut")
        self.put("storm")
        self.put("late-error")

    def test_a_server_without_checksums_gets_md5(self):
        self.assertEqual(self.put("md5")["verified"], "md5")
        self.assertEqual(self.put("md5", "--force", path=self.small)["verified"], "md5")

    def test_other_bytes_on_the_server_are_an_error(self):
        for bucket in ("wrong-etag", "wrong-sum"):
            for path in (self.path, self.small):
                self.fails(bucket, "stored other bytes than were sent", path=path)
        self.fails("bad-part", "InvalidPart")
        self.assertNotIn(("bad-part", "key"), self.server.objects)

    def test_a_lost_answer_is_not_an_error(self):
        self.put("lost")
        del self.server.objects["lost", "key"]
        self.put("lost", path=self.small)

    def test_nothing_is_overwritten_without_force(self):
        for path in (self.path, self.small):
            self.server.objects["none", "key"] = b"old", None
            result = self.fails("none", "the object exists", path=path)
            self.assertIn("--force", result.stderr)
            self.put("none", "--force", path=path)
        # Another program writes the object while the parts are sent.
        self.server.before = lambda name, count: name.endswith("upload") and self.server.objects.update({("race", "key"): (b"new", None)})
        self.fails("race", "the object exists")
        self.assertEqual(self.server.objects["race", "key"][0], b"new")

    def test_a_server_that_cannot_compare(self):
        self.put("old")
        del self.server.objects["old", "key"]
        self.put("old", path=self.small)

    def test_an_interrupted_upload_continues(self):
        self.fails("denied", "does not let us write it", "--parallel", "1")
        self.assertEqual(len(self.states()), 1)
        self.assertNotIn(("denied", "key"), self.server.objects)
        # One part on the server is damaged, and the end of the file is another one now.
        (_, _, parts), = self.server.uploads.values()
        parts[1] = b"x" + parts[1][1:]
        with open(self.path, "ab") as file:
            file.write(b", really")
        self.server.requests.clear()
        self.server.uploads = {upload: ("none", "key", parts) for upload in self.server.uploads}
        self.fails("denied", "does not let us write it", "--parallel", "1")
        self.assertEqual(sorted(self.sent("PUT part")), [len(b"the end, really"), PART])
        # The server has removed them: everything is sent.
        self.server.uploads.clear()
        self.fails("denied", "does not let us write it", "--parallel", "1")
        self.assertEqual(len(self.server.uploads), 1)

    def test_ctrl_c_keeps_the_parts_for_the_next_run(self):
        arrived, go_on = threading.Event(), threading.Event()

        def before(name, count):
            if name == "PUT part" and count == 2:
                arrived.set()
                go_on.wait(60)

        self.server.before = before
        command, environment = self.command("--json", "--parallel", "1", self.path, "s3://none/key")
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(arrived.wait(60))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        go_on.set()
        self.assertEqual(process.returncode, -signal.SIGINT, errors)
        self.assertIn("run the command again to continue", errors)
        self.assertEqual(self.server.objects, {})
        self.server.before = lambda name, count: None
        report = self.put("none")
        self.assertGreaterEqual(report["parts_found"], 1)
        self.assertEqual(report["bytes_sent"], len(self.data) - sum((PART, PART, 7)[:report["parts_found"]]))

    def test_a_file_that_changes_is_not_uploaded(self):
        def before(name, count):
            if name == "PUT part" and count == 2:
                with open(self.path, "r+b") as file:
                    file.write(b"changed")
                os.utime(self.path, (1, 1))

        self.server.before = before
        self.fails("none", "was changed while it was uploaded", "--parallel", "1")
        self.assertEqual(self.server.objects, {})

    def test_abort_removes_the_parts(self):
        for _ in range(2):
            self.fails("denied", "does not let us write it", "--parallel", "1")
            self.cache = tempfile.mkdtemp(dir=self.folder.name)
        self.server.uploads["other"] = "denied", "key2", {}
        result = self.run_put("--abort", "s3://denied/key")
        self.assertEqual((result.returncode, result.stdout), (0, "s3://denied/key: 2 unfinished uploads removed\n"), result.stderr)
        self.assertEqual(list(self.server.uploads), ["other"])

    def test_wrong_arguments(self):
        self.assertIn("uploads go to s3://bucket/key", self.run_put(self.small, "http://host/key").stderr)
        self.assertIn("no address given", self.run_put(self.small).stderr)
        self.assertIn("5 MiB", self.run_put("--part-size", "1K", self.small, "s3://none/key").stderr)
        self.assertIn("add a name", self.run_put("-", "s3://none/folder/").stderr)


if __name__ == "__main__":
    unittest.main()
