"""A gateway whose providers are referees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from tests.support.clouds import connect
from tests.support.gateway_pool import GatewayPool
from tests.support.processes import Gateway, expect
from tests.support.referees.upstream import Referee

# The caller dialect of each provider, and models of the families whose rules differ.
MODELS: Final = {
    "openai": (
        "chat",
        ["gpt-4.1", "gpt-5", "gpt-5.1", "gpt-5.4", "gpt-5.6-sol", "gpt-6-astra", "o3"],
    ),
    "anthropic": (
        "messages",
        [
            "claude-opus-5-5",
            "claude-fable-5-1",
            "claude-sonnet-5",
            "claude-opus-4-8",
            "claude-opus-4-6",
            "claude-opus-4-5",
            "claude-haiku-4-5",
        ],
    ),
    "gemini": ("gemini", ["gemini-3.1-pro-preview", "gemini-3-flash-preview", "gemini-2.5-pro"]),
    "mistral": ("chat", ["mistral-medium-latest", "ministral-14b-latest"]),
    "deepseek": ("chat", ["deepseek-v4-pro", "deepseek-chat"]),
    "moonshot": ("chat", ["kimi-k2.6", "kimi-k2.7-code", "kimi-k3"]),
    "dashscope": ("chat", ["qwen3-30b-a3b", "qwen-plus", "qwen3-coder-plus"]),
    "groq": ("chat", ["openai/gpt-oss-120b", "qwen/qwen3.8-27b"]),
    "cerebras": ("chat", ["gpt-oss-120b"]),
    "fireworks": ("chat", ["accounts/fireworks/models/kimi-k2p6"]),
    "nvidia": ("chat", ["meta/llama-3.3-70b-instruct"]),
    "bedrock": ("converse", ["amazon.nova-pro-v1:0"]),
}
DIALECTS: Final = {
    f"{provider}/{model}": dialect
    for provider, (dialect, models) in MODELS.items()
    for model in models
}


def is_own_dialect(caller: str, model: str) -> bool:
    """Whether the caller writes in the dialect of the model's provider, so that its members pass unchanged."""
    is_responses = caller == "responses" and model.startswith("openai/")
    return is_responses or DIALECTS[model] == caller


@contextlib.contextmanager
def connected_gateway(pool: GatewayPool, referee: Referee) -> Iterator[Gateway]:
    """A gateway with one connection to the referee of each provider, for as long as the context lasts."""
    with pool.lease() as gateway:
        made = []
        for provider in MODELS:
            parts = {"region": "us-east-1"} if provider == "bedrock" else {}
            secret = "sk-canary-of-referees"
            made.append(connect(gateway, provider, referee.base(provider), apiKey=secret, **parts))
        yield gateway
        for connection in made:
            expect(gateway.admin.delete(f"/api/providers/{connection['id']}"), 200)
