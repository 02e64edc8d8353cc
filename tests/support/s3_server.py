"""An S3-compatible store in memory, which judges signatures by Amazon's description and not by our code.

with S3Server() as store:
    store.url          # for FAIRLEAD_FILES_URL
    store.objects      # what is there, by bucket and key
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Final, Self
from urllib.parse import parse_qsl, quote, urlsplit

from tests.support.http_server import LocalServer

ACCESS_KEY_ID: Final = "AKIATESTTESTTESTTEST"
SECRET_ACCESS_KEY: Final = "a/secret+that-no-log-may-hold"
REGION: Final = "eu-central-1"
BUCKET: Final = "contents"
PAGE: Final = 3
"""Few, so that lists have several pages."""
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
SETTINGS: Final = {
    "FAIRLEAD_FILES_ACCESS_KEY_ID": ACCESS_KEY_ID,
    "FAIRLEAD_FILES_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
}


@dataclass
class Upload:
    """A multipart upload that was begun."""

    key: str
    begun_s: float
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class S3Server:
    """The store; a context manager."""

    objects: dict[str, bytes] = field(default_factory=dict)
    changed_s: dict[str, float] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and target of each."""
    failures: int = 0
    """So many requests are answered 503 from now on."""
    cut_after: int | None = None
    """The next object that is read breaks off after so many bytes."""
    hold_parts: threading.Event | None = None
    """Parts are not answered before it is set."""
    hold: threading.Event | None = None
    """Nothing is answered before it is set."""

    def __enter__(self) -> Self:
        self._server = LocalServer(type("Handler", (_Handler,), {"store": self}))
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for held in (self.hold_parts, self.hold):
            if held is not None:
                held.set()
        self._server.__exit__()

    @property
    def url(self) -> str:
        endpoint = f"http://{self._server.authority}"
        return f"s3://{BUCKET}/of/this?endpoint={quote(endpoint, safe='')}&region={REGION}"

    def below(self, folder: str) -> dict[str, bytes]:
        """What is below a folder of the prefix, by the rest of its name."""
        start = f"of/this/{folder}/"
        return {
            key.removeprefix(start): body
            for key, body in list(self.objects.items())
            if key.startswith(start)
        }

    def put(self, key: str, body: bytes) -> None:
        self.objects[key] = body
        self.changed_s[key] = time.time()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    store: S3Server

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        store = self.store
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        store.requests.append((self.command, self.path))
        if store.hold is not None:
            store.hold.wait(60)
        if store.failures > 0:
            store.failures -= 1
            self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
            return
        if (fault := self._signature_fault(body)) is not None:
            self._answer(403, f"<Error><Code>{fault}</Code></Error>".encode())
            return
        parts = urlsplit(self.path)
        bucket, _, key = parts.path.removeprefix("/").partition("/")
        if bucket != BUCKET:
            self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            return
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if key:
            getattr(self, f"_{self.command.lower()}")(key, query, body)
        elif "uploads" in query:
            self._list_uploads(query)
        else:
            self._list(query)

    def do_GET(self) -> None:
        self._handle()

    def do_HEAD(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def _get(self, key: str, _: dict[str, str], __: bytes) -> None:
        body = self.store.objects.get(key)
        if body is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        if asked is not None:
            body = body[int(asked[1]) : int(asked[2]) + 1 if asked[2] else None]
        cut, self.store.cut_after = self.store.cut_after, None
        self._answer(200 if asked is None else 206, body, cut_after=cut)

    def _head(self, key: str, _: dict[str, str], __: bytes) -> None:
        body = self.store.objects.get(key)
        self.send_response(404 if body is None else 200)
        self.send_header("content-length", str(len(body or b"")))
        self.end_headers()

    def _put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" not in query:
            self.store.put(key, body)
        else:
            if self.store.hold_parts is not None:
                self.store.hold_parts.wait(60)
            upload = self.store.uploads.get(query["uploadId"])
            if upload is None or upload.key != key:
                self._answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
                return
            upload.parts[int(query["partNumber"])] = body
        self._answer(200, b"", etag=_etag(body))

    def _post(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            upload_id = f"upload-{len(self.store.requests)}"
            self.store.uploads[upload_id] = Upload(key, time.time())
            self._answer(200, f"<Result><UploadId>{upload_id}</UploadId></Result>".encode())
            return
        upload = self.store.uploads.get(query["uploadId"])
        if upload is None:
            self._answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
            return
        named = re.findall(
            r"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag></Part>", body.decode()
        )
        if [(int(number), tag) for number, tag in named] != [
            (number, _etag(part)) for number, part in sorted(upload.parts.items())
        ]:
            self._answer(400, b"<Error><Code>InvalidPart</Code></Error>")
            return
        del self.store.uploads[query["uploadId"]]
        self.store.put(key, b"".join(part for _, part in sorted(upload.parts.items())))
        self._answer(200, b"<CompleteMultipartUploadResult/>")

    def _delete(self, key: str, query: dict[str, str], _: bytes) -> None:
        if "uploadId" in query:
            self.store.uploads.pop(query["uploadId"], None)
        else:
            self.store.objects.pop(key, None)
        self._answer(204, b"")

    def _list(self, query: dict[str, str]) -> None:
        after = query.get("continuation-token", "")
        keys = sorted(k for k in list(self.store.objects) if k.startswith(query["prefix"]))
        keys = [key for key in keys if key > after]
        page = keys[:PAGE]
        told = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{_moment(self.store.changed_s[key])}</LastModified>"
            f"<Size>{len(self.store.objects[key])}</Size></Contents>"
            for key in page
        )
        if len(keys) > PAGE:
            told += f"<NextContinuationToken>{page[-1]}</NextContinuationToken>"
        self._answer(200, f"<ListBucketResult>{told}</ListBucketResult>".encode())

    def _list_uploads(self, query: dict[str, str]) -> None:
        found = {i: u for i, u in self.store.uploads.items() if u.key.startswith(query["prefix"])}
        told = "".join(
            f"<Upload><Key>{upload.key}</Key><UploadId>{upload_id}</UploadId>"
            f"<Initiated>{_moment(upload.begun_s)}</Initiated></Upload>"
            for upload_id, upload in found.items()
        )
        told += "<IsTruncated>false</IsTruncated>"
        self._answer(
            200, f"<ListMultipartUploadsResult>{told}</ListMultipartUploadsResult>".encode()
        )

    def _answer(
        self, status: int, body: bytes, *, etag: str | None = None, cut_after: int | None = None
    ) -> None:
        self.send_response(status)
        if etag is not None:
            self.send_header("etag", etag)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body if cut_after is None else body[:cut_after])
        if cut_after is not None:
            self.close_connection = True

    def _signature_fault(self, body: bytes) -> str | None:
        """Why a request is refused ("Authenticating Requests: Using the Authorization Header")."""
        found = _AUTHORIZATION.fullmatch(self.headers.get("authorization", ""))
        at = self.headers.get("x-amz-date", "")
        if found is None or found[1] != ACCESS_KEY_ID or found[3] != REGION:
            return "InvalidAccessKeyId"
        sent_s = datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        if abs(time.time() - sent_s) > 900 or found[2] != at[:8]:
            return "RequestTimeTooSkewed"
        if self.headers.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        signed = found[4].split(";")
        own = {name.lower() for name in self.headers if name.lower().startswith("x-amz-")}
        if not own | {"host"} <= set(signed) or signed != sorted(signed):
            return "AccessDenied"
        parts = urlsplit(self.path)
        pairs = sorted(
            (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        )
        canonical = "\n".join(
            [
                self.command,
                parts.path,
                "&".join(f"{name}={value}" for name, value in pairs),
                *(f"{name}:{self.headers[name].strip()}" for name in signed),
                "",
                ";".join(signed),
                hashlib.sha256(body).hexdigest(),
            ]
        )
        scope = f"{found[2]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{SECRET_ACCESS_KEY}".encode()
        for part in (found[2], REGION, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        right = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return None if hmac.compare_digest(right, found[5]) else "SignatureDoesNotMatch"


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _moment(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%S.000Z}"
