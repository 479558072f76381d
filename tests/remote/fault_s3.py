"""A server on loopback that takes uploads as S3 does and misbehaves on request: the bucket names the fault.

It keeps objects and parts in memory. What a real server can show is tested with one (test_servers.py).
"""
import base64
import hashlib
import http.server
import socket
import threading
import urllib.parse


class Uploads(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one(self):
        path, _, query = self.path.partition("?")
        _, self.bucket, self.key = (urllib.parse.unquote(path) + "/").split("/", 2)
        self.key = self.key.rstrip("/")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        name = f"{self.command} {'part' if 'partNumber' in self.query else 'uploads' if 'uploads' in self.query else 'upload' if 'uploadId' in self.query else 'object'}"
        with self.server.lock:
            self.count = self.server.counts[self.bucket, name] = self.server.counts.get((self.bucket, name), 0) + 1
        if self.bucket == "cut" and name == "PUT part" and self.count % 2:
            self.rfile.read(min(1000, int(self.headers["Content-Length"])) - 1)
            return self.hang_up()
        if self.bucket == "storm" and self.count % 2:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return self.answer(503, b"<Error><Code>SlowDown</Code></Error>", Retry_After="0")
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.bucket, name, dict(self.headers), len(self.body)))
        self.server.before(name, self.count)
        if hashlib.sha256(self.body).hexdigest() != self.headers.get("x-amz-content-sha256"):
            return self.answer(400, b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>")
        getattr(self, name.replace(" ", "_"))()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

    def log_message(self, *unused):
        pass

    def hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def knows_sums(self):
        return self.bucket not in ("md5", "wrong-etag")

    def sums(self, data):
        sums = {"ETag": '"%s"' % hashlib.md5(data).hexdigest()}
        if self.knows_sums():
            sums["x_amz_checksum_sha256"] = base64.b64encode(hashlib.sha256(data).digest()).decode()
        if self.bucket == "wrong-etag":
            sums["ETag"] = '"%032x"' % 1
        if self.bucket == "wrong-sum":
            sums["x_amz_checksum_sha256"] = base64.b64encode(bytes(32)).decode()
        return sums

    def store(self, data, parts=None):
        """The object appears, unless it exists and must not."""
        key = (self.bucket, self.key)
        if self.headers.get("If-None-Match") == "*":
            if self.bucket == "old":
                self.answer(501, b"<Error><Code>NotImplemented</Code></Error>")
                return False
            if key in self.server.objects:
                self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return False
        self.server.objects[key] = data, parts
        return True

    def HEAD_object(self):
        found = self.server.objects.get((self.bucket, self.key))
        if not found:
            return self.answer(404)
        data, parts = found
        sums = self.sums(data)
        if parts:
            sums = {"ETag": '"%s-%d"' % (hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest(), len(parts))}
        self.answer(200, Content_Length=str(len(data)), **sums)

    def PUT_object(self):
        if "content-md5" in self.headers and base64.b64decode(self.headers["content-md5"]) != hashlib.md5(self.body).digest():
            return self.answer(400, b"<Error><Code>BadDigest</Code></Error>")
        if self.store(self.body):
            if self.bucket == "lost":
                return self.hang_up()
            self.answer(200, **self.sums(self.body))

    def POST_uploads(self):
        with self.server.lock:
            upload = f"id/{len(self.server.uploads)}+&"
            self.server.uploads[upload] = self.bucket, self.key, {}
        self.answer(200, b"<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>"
                    % upload.replace("&", "&amp;").encode(),
                    **({"x_amz_checksum_algorithm": "SHA256"} if self.knows_sums() else {}))

    def parts(self):
        found = self.server.uploads.get(self.query["uploadId"])
        if not found:
            self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        return found and found[2]

    def PUT_part(self):
        parts = self.parts()
        if parts is None:
            return
        if self.bucket == "denied" and self.query["partNumber"] == "3":
            return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        sums = [header for header in ("content-md5", "x-amz-checksum-sha256") if header in self.headers]
        assert sums == ["x-amz-checksum-sha256" if self.knows_sums() else "content-md5"], sums
        parts[int(self.query["partNumber"])] = self.body
        self.answer(200, **self.sums(self.body))

    def GET_upload(self):
        parts = self.parts()
        if parts is None:
            return
        after, most = int(self.query["part-number-marker"]), 1
        listed = [number for number in sorted(parts) if number > after]
        text = "<ListPartsResult><IsTruncated>%s</IsTruncated>" % str(len(listed) > most).lower()
        for number in listed[:most]:
            sums = self.sums(parts[number])
            sha = sums.get("x_amz_checksum_sha256")
            text += (f"<NextPartNumberMarker>{number}</NextPartNumberMarker><Part><PartNumber>{number}</PartNumber>"
                     f"<ETag>{sums['ETag'].replace(chr(34), '&quot;')}</ETag><Size>{len(parts[number])}</Size>"
                     + (f"<ChecksumSHA256>{sha}</ChecksumSHA256>" if sha else "") + "</Part>")
        self.answer(200, (text + "</ListPartsResult>").encode())

    def POST_upload(self):
        parts = self.parts()
        if parts is None:
            return
        if self.bucket == "late-error" and self.count == 1:
            return self.answer(200, b"\n\n<Error><Code>InternalError</Code></Error>")
        if self.bucket == "bad-part":
            return self.answer(400, b"<Error><Code>InvalidPart</Code></Error>")
        ordered = [parts[number] for number in sorted(parts)]
        if self.store(b"".join(ordered), ordered):
            del self.server.uploads[self.query["uploadId"]]
            if self.bucket == "lost":
                return self.hang_up()
            self.answer(200, b"<CompleteMultipartUploadResult><ETag>&quot;x-2&quot;</ETag></CompleteMultipartUploadResult>")

    def GET_uploads(self):
        """One upload on a page."""
        listed = sorted((key, upload) for upload, (bucket, key, _) in self.server.uploads.items()
                        if bucket == self.bucket and key.startswith(self.query["prefix"]))
        after = (self.query.get("key-marker", ""), self.query.get("upload-id-marker", ""))
        listed = [entry for entry in listed if entry > after]
        text = "<ListMultipartUploadsResult><IsTruncated>%s</IsTruncated>" % str(len(listed) > 1).lower()
        for key, upload in listed[:1]:
            upload = upload.replace("&", "&amp;")
            text += (f"<NextKeyMarker>{key}</NextKeyMarker><NextUploadIdMarker>{upload}</NextUploadIdMarker>"
                     f"<Upload><Key>{key}</Key><UploadId>{upload}</UploadId></Upload>")
        self.answer(200, (text + "</ListMultipartUploadsResult>").encode())

    def DELETE_upload(self):
        self.server.uploads.pop(self.query["uploadId"], None)
        self.answer(204)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Uploads)
        self.lock = threading.Lock()
        self.objects, self.uploads, self.counts, self.requests = {}, {}, {}, []
        self.before = lambda name, count: None
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *unused):
        pass
