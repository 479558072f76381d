"""Remote files on real servers: nginx, and an S3 server where one is installed.

    test_servers.py BUILD nginx|s3
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD, KIND = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
COFFER = os.path.join(BUILD, "coffer")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VECTORS = os.path.join(ROOT, "tests", "vectors")
SKIPPED = 77


def coffer(*arguments, **env):
    return subprocess.run([COFFER, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, **env})


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    for _ in range(500):
        if process and process.poll() is not None:
            raise RuntimeError("the server ended at once")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server does not answer")


def samples():
    """A valid vector of each format."""
    for kind in ("mcf", "mldf", "mlyze", "mscan", "pycauset"):
        folder = os.path.join(VECTORS, kind)
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.endswith("." + kind) and coffer("check", path).returncode == 0:
                yield path
                break


class Same:
    """Every verb that reads gives the same answer for the address as for the path."""

    def compare(self, address, path, **env):
        for verb in (["info"], ["check", "--full"], ["ls"], ["stats"], ["info", "--json"]):
            here, there = coffer(*verb, path), coffer(*verb, address, **env)
            self.assertEqual(there.returncode, here.returncode, f"{verb} {address}: {there.stderr}")
            self.assertEqual(there.stdout.replace(address, path), here.stdout, f"{verb} {address}")


NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log off; gzip on; gzip_types *; gzip_min_length 1;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{
        listen 127.0.0.1:{port}; listen 127.0.0.1:{tls} ssl http2; root {root};
        ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
        location /whole/ {{ alias {root}/; max_ranges 0; }}
        location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
        location /locked/ {{ alias {root}/; auth_basic "x"; auth_basic_user_file {folder}/users; }}
    }}
}}
"""


@unittest.skipUnless(KIND == "nginx", "another server")
class Nginx(unittest.TestCase, Same):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = cls.temporary.name
        cls.port, cls.tls = free_port(), free_port()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
                       check=True, capture_output=True)
        with open(f"{folder}/users", "w") as users:
            users.write("me:{PLAIN}secret\n")
        os.chmod(folder, 0o755)
        with open(f"{folder}/nginx.conf", "w") as conf:
            conf.write(NGINX.format(folder=folder, port=cls.port, tls=cls.tls, root=VECTORS))
        user = ["-g", "user root;"] if os.getuid() == 0 else []
        cls.process = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", f"{folder}/nginx.conf", *user],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(cls.port, cls.process)
        wait_for(cls.tls, cls.process)

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait()
        cls.temporary.cleanup()

    def address(self, path, place="", host="127.0.0.1"):
        return f"http://{host}:{self.port}/{place}{os.path.relpath(path, VECTORS)}"

    def test_all_formats(self):
        found = list(samples())
        self.assertEqual(len(found), 5)
        for path in found:
            self.compare(self.address(path), path)

    def test_http2_with_a_certificate(self):
        path = next(samples())
        address = f"https://localhost:{self.tls}/{os.path.relpath(path, VECTORS)}"
        self.compare(address, path, CURL_CA_BUNDLE=f"{self.temporary.name}/cert.pem")
        result = coffer("info", address)
        self.assertEqual(result.returncode, 3)
        self.assertIn("certificate", result.stderr)

    def test_redirects_passwords_and_whole_files(self):
        path = next(samples())
        self.compare(self.address(path, "moved/"), path)
        locked = coffer("check", "--full", self.address(path, "locked/", "me:secret@127.0.0.1"))
        self.assertEqual(locked.returncode, 0, locked.stderr)
        refused = coffer("check", self.address(path, "locked/"))
        self.assertEqual(refused.returncode, 3)
        self.assertIn("HTTP 401", refused.stderr)
        whole = coffer("check", self.address(path, "whole/"))
        self.assertIn("no ranges", whole.stderr)
        self.assertEqual(coffer("check", "--download", self.address(path, "whole/")).returncode, 0)


@unittest.skipUnless(KIND == "s3", "another server")
class S3(unittest.TestCase, Same):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = cls.temporary.name
        cls.port = free_port()
        os.makedirs(f"{folder}/files/models/dir")
        cls.server = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{cls.port}", "AWS_CONFIG_FILE": os.devnull,
                      "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        cls.keys = {**cls.server, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "top/secret+key"}
        cls.process = subprocess.Popen([SERVER, "--port", f"127.0.0.1:{cls.port}", "posix", f"{folder}/files"],
                                       env={**os.environ, "ROOT_ACCESS_KEY": "AKIDEXAMPLE", "ROOT_SECRET_KEY": "top/secret+key"},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(cls.port, cls.process)

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait()
        cls.temporary.cleanup()

    def test_keys_with_all_kinds_of_characters(self):
        path = next(samples())
        for key in ("m.mcf", "dir/m.mcf", "a b+c@(1)=ä&!'.mcf", "per%20cent?#.mcf"):
            shutil.copyfile(path, f"{self.temporary.name}/files/models/{key}")
            self.compare(f"s3://models/{key}", path, **self.keys)

    def test_credentials_of_a_profile(self):
        path, folder = next(samples()), self.temporary.name
        shutil.copyfile(path, f"{folder}/files/models/p.mcf")
        with open(f"{folder}/credentials", "w") as file:
            file.write("[default]\naws_access_key_id = no\naws_secret_access_key = no\n"
                       "[work]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = top/secret+key\n")
        with open(f"{folder}/config", "w") as file:
            file.write(f"[profile work]\nregion = us-east-1\nendpoint_url = http://127.0.0.1:{self.port}\ns3 =\n    addressing_style = path\n")
        self.compare("s3://models/p.mcf", path, AWS_PROFILE="work", AWS_CONFIG_FILE=f"{folder}/config",
                     AWS_SHARED_CREDENTIALS_FILE=f"{folder}/credentials")

    def test_wrong_credentials_are_named_and_not_shown(self):
        shutil.copyfile(next(samples()), f"{self.temporary.name}/files/models/w.mcf")
        result = coffer("info", "s3://models/w.mcf", **{**self.keys, "AWS_SECRET_ACCESS_KEY": "guess-of-mine"})
        self.assertEqual(result.returncode, 3)
        self.assertIn("SignatureDoesNotMatch", result.stderr)
        self.assertNotIn("guess-of-mine", result.stderr)
        missing = coffer("info", "s3://models/nothing.mcf", **self.keys)
        self.assertEqual(missing.returncode, 3)
        self.assertIn("NoSuchKey", missing.stderr)

    @unittest.skipUnless(os.path.isdir(f"{BUILD}/python"), "the Python package is not built here")
    def test_uploads_appear_whole_and_continue(self):
        folder, cache = self.temporary.name, f"{self.temporary.name}/cache"
        path, stored = f"{folder}/upload.bin", f"{folder}/files/models/ä +&.bin"
        with open(path, "wb") as file:
            file.write(os.urandom(11 << 20))
        env = {**self.keys, "XDG_CACHE_HOME": cache}
        # The progress of the first run stops it after a part.
        stop = ("import coffer, sys\n"
                "def step(done, total):\n"
                "    if done >= 5 << 20: raise KeyboardInterrupt\n"
                "coffer.put(sys.argv[1], sys.argv[2], part_size=5 << 20, parallel=1, progress=step)")
        first = subprocess.run(["/usr/bin/python3", "-P", "-c", stop, path, "s3://models/ä +&.bin"], capture_output=True, text=True,
                               timeout=60, env={**os.environ, **env, "PYTHONPATH": f"{BUILD}/python"})
        self.assertIn("KeyboardInterrupt", first.stderr)
        self.assertFalse(os.path.exists(stored))
        second = coffer("put", "--json", path, "s3://models/ä +&.bin", **env)
        self.assertEqual(second.returncode, 0, second.stderr)
        report = json.loads(second.stdout)
        self.assertGreaterEqual(report["parts_found"], 1)
        self.assertEqual((report["parts"], report["verified"]), (3, "sha256"))
        with open(path, "rb") as sent, open(stored, "rb") as arrived:
            self.assertEqual(sent.read(), arrived.read())
        again = coffer("put", path, "s3://models/ä +&.bin", **env)
        self.assertEqual(again.returncode, 3)
        self.assertIn("--force", again.stderr)
        self.assertEqual(coffer("put", "--force", path, "s3://models/ä +&.bin", **env).returncode, 0)
        removed = coffer("put", "--abort", "--json", "s3://models/ä +&.bin", **env)
        self.assertEqual(json.loads(removed.stdout)["uploads_removed"], 0)

    def test_small_uploads(self):
        path, folder = next(samples()), self.temporary.name
        result = coffer("put", path, "s3://models/", XDG_CACHE_HOME=f"{folder}/cache", **self.keys)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.compare(f"s3://models/{os.path.basename(path)}", path, **self.keys)
        refused = coffer("put", path, "s3://models/x", XDG_CACHE_HOME=f"{folder}/cache", **{**self.keys, "AWS_SECRET_ACCESS_KEY": "guess-of-mine"})
        self.assertEqual(refused.returncode, 3)
        self.assertNotIn("guess-of-mine", refused.stderr)


if __name__ == "__main__":
    PINNED = os.path.join(ROOT, "build", "tools", "versitygw")
    SERVER = PINNED if os.access(PINNED, os.X_OK) else shutil.which("versitygw") or os.path.expanduser("~/go/bin/versitygw")
    needed = {"nginx": shutil.which("nginx") or "/usr/sbin/nginx", "s3": SERVER}[KIND]
    if not os.access(needed, os.X_OK):
        group = {"nginx": "test", "s3": "servers"}[KIND]
        print(f"{os.path.basename(needed)} is not installed: 'scripts/bootstrap {group}' installs it")
        sys.exit(SKIPPED)
    unittest.main()
