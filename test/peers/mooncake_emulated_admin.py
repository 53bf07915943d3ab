"""The master's admin HTTP over an emulated store: the requests that a subscriber reconciles with.

Answers have the form of the real 0.3.14 master's: keys of tenant `default` only, keys split at commas after decoding.
"""
from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LISTS = {"cpu": "values", "disk": "local_disk_values"}


class Admin:
    """`status()` is what the publisher counts, `media()` maps (tenant, key) to a set of media."""

    def __init__(self, host: str, port: int, status, media):
        self.status, self.media = status, media
        self.failing = False
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                code, kind, body = outer.answer(self.path)
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_a):
                pass

        self.server = ThreadingHTTPServer((host, port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, target: str):
        path = urlsplit(target).path
        if self.failing:
            return reply(503, {"success": False, "error": "master is not ready"})
        if path == "/health":
            return reply(200, {"status": "ok"})
        if path == "/kv_events/status":
            return reply(200, {"enabled": True, **self.status()})
        if path == "/get_all_keys":
            keys = [key for tenant, key in list(self.media()) if tenant == "default"]
            return 200, "text/plain; version=0.0.4", "".join(f"{key}\n" for key in keys).encode()
        if path == "/batch_query_keys":
            keys = [k for k in ",".join(parse_qs(urlsplit(target).query).get("keys", [])).split(",") if k]
            if not keys:
                return reply(400, {"success": False, "error": "No keys provided. Use ?keys=key1,key2,..."})
            return reply(200, {"success": True, "data": {key: self.replicas(key) for key in keys}})
        if path == "/query_key":
            return self.memory_replicas(urlsplit(target).query)
        return reply(404, {"success": False, "error": "Not Found"})

    def replicas(self, key: str) -> dict:
        media = self.media().get(("default", key))
        found = dict(ok=media is not None, error=None if media is not None else "OBJECT_NOT_FOUND", values=None,
                     disk_values=None, local_disk_values=None, nof_values=None)
        for medium in media or ():
            found[LISTS[medium]] = [descriptor(medium)]
        return found

    def memory_replicas(self, query: str):
        """This request alone does not decode its key."""
        media = self.media().get(("default", query.removeprefix("key=")))
        if media is None:
            return reply(404, {"success": False, "error_code": -704, "error_message": "OBJECT_NOT_FOUND"})
        return reply(200, {"success": True, "data": [descriptor("cpu")] if "cpu" in media else []})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def descriptor(medium: str) -> dict:
    if medium == "disk":
        return {"client_id": "1-2", "object_size": 100, "transport_endpoint": "127.0.0.1:1"}
    return {"size_": 100, "buffer_address_": 4096, "protocol_": "tcp", "transport_endpoint_": "127.0.0.1:1"}


def reply(code: int, value: dict):
    return code, "application/json; charset=utf-8", json.dumps(value).encode()
