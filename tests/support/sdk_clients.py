"""The providers' official clients, pointed at a gateway; they try nothing again by themselves."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.sdks import anthropic, genai, openai
from tests.support.tls import NO_AUTHORITIES

VIDEO_OR_BATCH_WITHIN_S = 40.0


def openai_client(
    gateway: Gateway, key: str | None = None, *, timeout_s: float = 30
) -> openai.OpenAI:
    """With the gateway's unlimited key, or another one."""
    return openai.OpenAI(
        base_url=f"{gateway.url}/v1",
        api_key=key or gateway.key,
        max_retries=0,
        timeout=timeout_s,
        http_client=openai.DefaultHttpxClient(verify=NO_AUTHORITIES),
    )


def anthropic_client(
    gateway: Gateway, key: str | None = None, *, timeout_s: float = 30
) -> anthropic.Anthropic:
    """With the gateway's unlimited key, or another one."""
    return anthropic.Anthropic(
        base_url=gateway.url,
        api_key=key or gateway.key,
        max_retries=0,
        timeout=timeout_s,
        http_client=anthropic.DefaultHttpxClient(verify=NO_AUTHORITIES),
    )


def genai_client(
    gateway: Gateway, key: str | None = None, *, version: str | None = None
) -> genai.Client:
    """With the gateway's unlimited key, or another one; `version` is of the paths, `v1` or `v1beta`."""
    options = genai.types.HttpOptions(
        base_url=gateway.url,
        timeout=15_000,
        api_version=version,
        client_args={"verify": NO_AUTHORITIES},
        async_client_args={"verify": NO_AUTHORITIES, "ssl": NO_AUTHORITIES},
    )
    return genai.Client(api_key=key or gateway.key, http_options=options, vertexai=False)


class GenaiCaller:
    """A fresh key with Google's client, OpenAI's client and a plain one that sends the key as Google's does."""

    def __init__(self, gateway: Gateway, version: str | None = None, **key: Any) -> None:
        self.gateway = gateway
        self.key = gateway.create_key(**key)["key"]
        self.genai: Any = genai_client(gateway, self.key, version=version)
        self.openai = openai_client(gateway, self.key)
        self.plain: httpx.Client = gateway.client(headers={"x-goog-api-key": self.key})

    def add_webhook(self, url: str, *events: str, **more: Any) -> Any:
        """A webhook of this key for some events, or for all; its secret must stand nowhere else."""
        made = self.genai.webhooks.create(uri=url, subscribed_events=list(events) or ["*"], **more)
        self.gateway.canaries.append(made.new_signing_secret)
        return made

    def ended_batch(self, name: str) -> Any:
        """A batch, once it has ended."""
        ends = {f"JOB_STATE_{end}" for end in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")}

        def find() -> Any:
            job = self.genai.batches.get(name=name)
            return job if job.state.name in ends else None

        return eventually(find, "the batch ends", within_s=VIDEO_OR_BATCH_WITHIN_S, every_s=0.1)

    def ended_video(self, operation: Any) -> Any:
        """The operation that makes a video, once it has ended."""

        def find() -> Any:
            found = self.genai.operations.get(operation)
            return found if found.done else None

        return eventually(find, "the video ends", within_s=VIDEO_OR_BATCH_WITHIN_S, every_s=0.1)

    def ended_interaction(self, interaction_id: str) -> Any:
        """An interaction, once it neither waits nor runs."""

        def find() -> Any:
            found = self.genai.interactions.get(interaction_id)
            return found if found.status not in {"queued", "in_progress"} else None

        return eventually(find, "the interaction ends", within_s=30, every_s=0.1)

    def close(self) -> None:
        self.genai.close()
        self.openai.close()
        self.plain.close()
