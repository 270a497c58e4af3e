#!/usr/bin/env python3
"""make_image.py SOCKET TAG SPEC: loads an image made of nothing but SPEC into a Docker engine.

SPEC is JSON: {"config": {...}, "files": {"/path": {"text": "..."} | {"from": "/host/file"} | {"link": "target"} | {"dir": true} |
{"device": [major, minor]}}}
config is the image's own (Env, Volumes, Labels, Healthcheck, StopSignal, User ...). Nothing is pulled: the archive is
written here, in the format of `docker save`. An image that has TAG already is removed: loading would only take its name,
by which whoever made it removes it.
"""
import hashlib
import http.client
import io
import json
import socket
import sys
import tarfile


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("engine", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def add(tar, name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o755, device=(0, 0)):
    info = tarfile.TarInfo(name.lstrip("/"))
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(data)
    info.devmajor, info.devminor = device
    tar.addfile(info, io.BytesIO(data))


def layer(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, what in sorted(files.items()):
            if "link" in what:
                add(tar, path, kind=tarfile.SYMTYPE, link=what["link"], mode=0o777)
            elif "device" in what:
                add(tar, path, kind=tarfile.CHRTYPE, mode=0o666, device=what["device"])
            elif "dir" in what:
                add(tar, path, kind=tarfile.DIRTYPE)
            elif "from" in what:
                with open(what["from"], "rb") as file:
                    add(tar, path, file.read())
            else:
                add(tar, path, what["text"].encode(), mode=0o644)
    return out.getvalue()


def archive(tag, spec):
    content = layer(spec.get("files", {}))
    digest = hashlib.sha256(content).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": spec.get("config", {}),
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}, "history": [{"created_by": "test"}],
    }).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        add(tar, name, config)
        add(tar, "layer.tar", content)
        add(tar, "manifest.json", json.dumps(manifest).encode())
    return out.getvalue()


def main():
    path, tag, spec = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    connection = UnixConnection(path)
    connection.request("DELETE", "/images/%s?force=1" % tag)
    answer = connection.getresponse()
    body = answer.read(1 << 20)
    if answer.status not in (200, 404):
        sys.exit("removing %s: HTTP %d: %r" % (tag, answer.status, body))
    connection.request("POST", "/images/load?quiet=1", archive(tag, spec), {"Content-Type": "application/x-tar"})
    answer = connection.getresponse()
    body = answer.read(1 << 20).decode(errors="replace")
    if answer.status != 200 or '"error"' in body:
        sys.exit("loading %s: HTTP %d: %s" % (tag, answer.status, body))


if __name__ == "__main__":
    main()
