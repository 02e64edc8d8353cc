"""The headers and cookies of a job's request: sealed beside its options, which show their names alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import orjson

from fairlead.scrape.jobs.table import Job
from fairlead.store.sealer import Sealer

SHOWN: Final = "***"
_OPTIONS: Final = ("options", "scrapeOptions")
_SECRETS: Final = ("headers", "cookies")


def seal_secrets(sealer: Sealer, job: Job) -> Job:
    """The job as it is stored."""
    request = orjson.loads(job.options)
    secrets: dict[str, dict[str, dict[str, str]]] = {}
    for place in _OPTIONS:
        for name in _SECRETS:
            if values := (request.get(place) or {}).get(name):
                secrets.setdefault(place, {})[name] = values
                request[place][name] = dict.fromkeys(values, SHOWN)
    if not secrets:
        return job
    sealed = sealer.seal(sealed_as(job.id), orjson.dumps(secrets))
    return replace(job, options=orjson.dumps(request).decode(), secrets_sealed=sealed)


def whole_request(sealer: Sealer, job: Job) -> dict[str, Any]:
    """The job's request with its headers and cookies."""
    request: dict[str, Any] = orjson.loads(job.options)
    if job.secrets_sealed is not None:
        secrets = orjson.loads(sealer.unseal(sealed_as(job.id), bytes(job.secrets_sealed)))
        for place, values in secrets.items():
            request[place] |= values
    return request


def sealed_as(job_id: str) -> str:
    """The associated data of a job's secrets."""
    return f"scrape-job:{job_id}"
