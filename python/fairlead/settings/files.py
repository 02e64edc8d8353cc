"""The store for the contents of files: uploads, inputs and outputs of batches, captured bodies, backups."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, field_validator

from fairlead.errors import Refusal
from fairlead.net.web_address import service_address
from fairlead.process.setting_names import variable_of
from fairlead.settings.group import OptionalSecret, SettingsGroup

DEFAULT_REGION: Final = "us-east-1"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*")
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class BucketLocation:
    """A part of an S3 bucket. `prefix` is empty or ends with a slash; `endpoint` is an origin without a path."""

    bucket: str
    prefix: str
    endpoint: str
    region: str


def read_files_url(text: str) -> Path | BucketLocation:
    """The place that an address names. `ValueError` says which rule it breaks."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("must be file:///directory or s3://bucket/prefix") from None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/") or parts.query:
            raise ValueError("must name an absolute path: file:///srv/fairlead")
        return Path(unquote(parts.path))
    if parts.scheme != "s3":
        raise ValueError("must begin with file:/// or s3://")
    if "@" in parts.netloc:
        raise ValueError(
            "must hold no key: set FAIRLEAD_FILES_ACCESS_KEY_ID and FAIRLEAD_FILES_SECRET_ACCESS_KEY"
        )
    return _bucket(parts.netloc, parts.path.strip("/"), parts.query)


def _bucket(bucket: str, path: str, query: str) -> BucketLocation:
    prefix = f"{path}/" if path else ""
    if _BUCKET.fullmatch(bucket) is None:
        raise ValueError("must name a bucket: s3://bucket/prefix")
    if _PREFIX.fullmatch(prefix) is None:
        raise ValueError("must have a prefix of letters, digits, `_`, `-`, `.` and `/`")
    given = parse_qsl(query, keep_blank_values=True)
    options = dict(given)
    if len(options) < len(given) or not options.keys() <= {"endpoint", "region"}:
        raise ValueError("may have only `endpoint` and `region`, each once, after the `?`")
    region = options.get("region", DEFAULT_REGION)
    if _REGION.fullmatch(region) is None:
        raise ValueError("must have a region such as eu-central-1")
    endpoint = options.get("endpoint", f"https://s3.{region}.amazonaws.com")
    if urlsplit(endpoint).path.strip("/"):
        raise ValueError("must have an endpoint without a path, such as https://s3.example.com")
    return BucketLocation(bucket, prefix, service_address(endpoint).rstrip("/"), region)


class FileFields(SettingsGroup):
    """The store of files; without it they are in the data directory."""

    files_url: str | None = Field(
        None,
        description="The store for uploads, inputs and outputs of batches, backups and captured "
        "bodies, instead of the data directory: a directory that nodes share, "
        "`file:///srv/fairlead`, or an S3-compatible store, "
        "`s3://bucket/prefix?endpoint=https://s3.example.com&region=eu-central-1`.",
    )
    files_access_key_id: str | None = Field(
        None, max_length=256, description="The id of the access key of that S3-compatible store."
    )
    files_secret_access_key: OptionalSecret = Field(None, description="The secret of that key.")

    @field_validator("files_url")
    @classmethod
    def _is_place(cls, text: str | None) -> str | None:
        if not text:
            return None
        read_files_url(text)
        return text

    def check_files(self) -> None:
        """Raises `Refusal` where the store of files cannot be used as it is set."""
        place = self.files_location
        if isinstance(place, Path) and not os.access(place, os.R_OK | os.W_OK | os.X_OK):
            raise Refusal(
                f"{variable_of('files_url')} names {place}, which is no folder that can be written to: make it, or "
                "mount it first."
            )
        has_keys = self.files_access_key_id and self.files_secret_access_key
        if isinstance(place, BucketLocation) and not has_keys:
            raise Refusal(
                f"{variable_of('files_url')} names a bucket: set {variable_of('files_access_key_id')} and "
                f"{variable_of('files_secret_access_key')}."
            )

    @property
    def files_location(self) -> Path | BucketLocation | None:
        """The store of contents; None for the data directory."""
        return None if self.files_url is None else read_files_url(self.files_url)
