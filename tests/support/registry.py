#!/usr/bin/env python3
"""registry.py LOG SPEC [SECONDS]: a registry that only answers, on loopback, with an image of nothing but SPEC (see make_image.py).

Prints its port and serves for SECONDS, five minutes without, or until it is killed. Each request becomes a line of LOG. The
image is there by any name with one of these tags: "good"; "arm", which says that it is for arm64; "half", whose configuration
breaks off in its middle (an engine tries a layer again for minutes); "slow", whose layer never ends.
"""
import gzip
import hashlib
import http.server
import json
import sys
import threading
import time

import make_image

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Image:
    def __init__(self, tag, spec):
        tar = make_image.layer(dict(spec["files"], **{"/etc/tag": {"text": tag}}))
        self.layer = gzip.compress(tar, mtime=0)
        self.config = json.dumps({
            "architecture": "arm64" if tag == "arm" else "amd64", "os": "linux", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(tar)]}, "history": [{"created_by": "test"}],
        }).encode()
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(self.config), "digest": digest(self.config)},
            "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": len(self.layer),
                        "digest": digest(self.layer)}],
        }).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    images = {}
    log_path = ""

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        if status == 200:
            self.send_header("Docker-Content-Digest", digest(body))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code):
        body = json.dumps({"errors": [{"code": code, "message": code.lower().replace("_", " ")}]}).encode()
        self.answer(404, "application/json", body)

    def cut(self, blob, then_wait):
        self.answer(200, "application/octet-stream", blob[:len(blob) // 2], len(blob))
        self.wfile.flush()
        if then_wait:
            time.sleep(300)
        self.close_connection = True

    def do_GET(self):
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write(self.command + " " + self.path + "\n")
        parts = self.path.split("/")
        if self.path.rstrip("/") == "/v2":
            return self.answer(200, "application/json", b"{}")
        for tag, image in self.images.items():
            if parts[-2] == "manifests" and parts[-1] in (tag, digest(image.manifest)):
                return self.answer(200, MANIFEST, image.manifest)
            if parts[-2] == "blobs" and parts[-1] == digest(image.config):
                if tag == "half":
                    return self.cut(image.config, False)
                return self.answer(200, "application/octet-stream", image.config)
            if parts[-2] == "blobs" and parts[-1] == digest(image.layer):
                if tag == "slow":
                    return self.cut(image.layer, True)
                return self.answer(200, "application/octet-stream", image.layer)
        return self.refuse("MANIFEST_UNKNOWN" if parts[-2] == "manifests" else "BLOB_UNKNOWN")

    do_HEAD = do_GET


def main():
    Handler.log_path, spec = sys.argv[1], json.loads(sys.argv[2])
    Handler.images = {tag: Image(tag, spec) for tag in ("good", "arm", "half", "slow")}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 300)


main()
