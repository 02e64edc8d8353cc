"""The fields of the form of a new connection, and where its key is created, by provider.

`tests/unit/python/dashboard/test_provider_facts.py` compares it with the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BASE_URL: Final = "baseUrl"
# The parts of an address that a provider needs.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "azure": ("resource",),
    "azure-ai": ("resource",),
    "bedrock": ("region",),
    "cloudflare": ("account",),
    "databricks": ("workspace",),
    "snowflake": ("account",),
    "vertex": ("project", "region"),
}
# Optional parts of an address.
OPTIONAL_PARTS: Final[Mapping[str, tuple[str, ...]]] = {"azure": ("apiVersion", "deployments")}
ON_YOUR_MACHINE: Final = ("llama-cpp", "lm-studio", "ollama", "sglang", "vllm")
POPULAR: Final = (
    "openai",
    "anthropic",
    "gemini",
    "mistral",
    "groq",
    "deepseek",
    "openrouter",
    "xai",
)
CLOUDS: Final = ("azure", "azure-ai", "bedrock", "vertex", "databricks", "snowflake", "cloudflare")
# Pages of providers where an API key is created.
KEY_PAGES: Final[Mapping[str, str]] = {
    "ai21": "https://studio.ai21.com/account/api-key",
    "anthropic": "https://console.anthropic.com/settings/keys",
    "cerebras": "https://cloud.cerebras.ai",
    "cohere": "https://dashboard.cohere.com/api-keys",
    "dashscope": "https://modelstudio.console.alibabacloud.com",
    "deepinfra": "https://deepinfra.com/dash/api_keys",
    "deepseek": "https://platform.deepseek.com/api_keys",
    "fireworks": "https://app.fireworks.ai/settings/users/api-keys",
    "gemini": "https://aistudio.google.com/apikey",
    "github-models": "https://github.com/settings/personal-access-tokens",
    "groq": "https://console.groq.com/keys",
    "huggingface": "https://huggingface.co/settings/tokens",
    "jina": "https://jina.ai/api-dashboard",
    "mistral": "https://console.mistral.ai/api-keys",
    "moonshot": "https://platform.moonshot.ai/console/api-keys",
    "nvidia": "https://build.nvidia.com",
    "openai": "https://platform.openai.com/api-keys",
    "openrouter": "https://openrouter.ai/settings/keys",
    "perplexity": "https://www.perplexity.ai/settings/api",
    "poe": "https://poe.com/api_key",
    "sambanova": "https://cloud.sambanova.ai/apis",
    "together": "https://api.together.ai/settings/api-keys",
    "voyage": "https://dashboard.voyageai.com",
    "xai": "https://console.x.ai",
    "zai": "https://z.ai/manage-apikey/apikey-list",
}


def address_parts(provider: str) -> tuple[str, ...]:
    """The fields of the address that the form asks for."""
    return (*PARTS.get(provider, ()), *OPTIONAL_PARTS.get(provider, ()), BASE_URL)


def needs_address(provider: str) -> bool:
    """Whether nothing can be reached without the fields of the address."""
    return provider in PARTS


def section_of(provider: str, *, is_own: bool) -> str:
    """The section of the list in which a provider is shown."""
    if is_own:
        return "Your endpoints"
    if provider in POPULAR:
        return "Popular"
    if provider in CLOUDS:
        return "Clouds"
    return "On your machine" if provider in ON_YOUR_MACHINE else "All others"


SECTIONS: Final = ("Your endpoints", "Popular", "Clouds", "On your machine", "All others")
