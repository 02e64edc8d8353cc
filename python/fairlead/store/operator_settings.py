"""Settings that an operator may change at run time: one typed list of names, types, defaults and bounds.

The management routes, the stored form and `docs/reference/settings.md` are all derived from `OperatorSettings`.
"""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
)
from pydantic.alias_generators import to_camel

from fairlead.net.web_address import web_address
from fairlead.store.file import Connection
from fairlead.store.origins import ORIGINS_MAX, spell_origin

GuardrailAction = Literal["warn", "redact", "block"]
AccountStrategy = Literal["p2c", "fill-first", "round-robin", "weighted", "least-used", "sticky"]
# With `off`, the default, answers are not inspected.
AnswerAction = Literal["off", "warn", "redact", "block"]


ProviderId = Annotated[StrictStr, Field(min_length=1, max_length=200)]

# Stands for a stored secret in responses; sent back in a change, it keeps the stored one.
SHOWN_SECRET = "***"  # noqa: S105
Secret = Annotated[
    SecretStr, PlainSerializer(lambda _: SHOWN_SECRET, return_type=str, when_used="json")
]


CompressionLevel = Literal["minimal", "standard", "aggressive"]
"""How strongly one engine shortens a conversation."""

COMPRESSION_LEVELS: Final[tuple[str, ...]] = get_args(CompressionLevel)


class OperatorSettings(BaseModel):
    """The settings; a field's description is its text in the reference."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    usage_retention_days: StrictInt = Field(
        90,
        ge=1,
        le=3650,
        description="Days after which usage records and request logs are deleted.",
    )
    usage_minute_retention_days: StrictInt = Field(
        7, ge=1, le=3650, description="Days after which usage by the minute is deleted."
    )
    usage_hour_retention_days: StrictInt = Field(
        400, ge=1, le=3650, description="Days after which usage by the hour is deleted."
    )
    usage_day_retention_days: StrictInt = Field(
        3650, ge=1, le=3650, description="Days after which usage by the day is deleted."
    )
    capture_bodies: StrictBool = Field(
        False,
        description="Whether what every caller asks and is answered is kept, masked and sealed, for "
        "`/api/usage/logs/{id}/body`; else of keys with `captureBodies`. `noLog` of a key goes before both.",
    )
    capture_body_kb: StrictInt = Field(
        256, ge=1, le=8192, description="KiB that are kept of each body; the rest is cut off."
    )
    capture_mb: StrictInt = Field(
        1024,
        ge=1,
        le=1_048_576,
        description="MiB of kept bodies, of all nodes that share files together; the oldest go.",
    )
    capture_days: StrictInt = Field(
        7, ge=1, le=365, description="Days after which kept bodies are deleted."
    )
    webhook_history_days: StrictInt = Field(
        7,
        ge=1,
        le=90,
        description="Days after which finished webhook deliveries are deleted.",
    )
    backup_every_hours: StrictInt = Field(
        24,
        ge=0,
        le=720,
        description="Hours from one scheduled backup of the state to the next; 0 makes none.",
    )
    backup_keep_count: StrictInt = Field(
        20, ge=1, le=1000, description="Backups that are kept: the newest."
    )
    backup_keep_days: StrictInt = Field(
        0,
        ge=0,
        le=3650,
        description="Days after which backups are deleted, but for the newest; 0 keeps them at any age.",
    )
    backup_upload_mb: StrictInt = Field(
        4096,
        ge=1,
        le=1_048_576,
        description="MiB that an export may have which is uploaded to be restored.",
    )
    credential_probe_minutes: StrictInt = Field(
        0,
        ge=0,
        le=10_080,
        description="Minutes between tests of each active connection's credential; 0 turns the "
        "schedule off.",
    )
    credential_probe_jitter_percent: StrictInt = Field(
        10,
        ge=0,
        le=50,
        description="By how much of that time each such test comes sooner or later, so that they "
        "do not come together.",
    )
    provider_usage_minutes: StrictInt = Field(
        0,
        ge=0,
        le=10_080,
        description="Minutes between calls of each provider's usage route, if it has one; 0 turns the "
        "schedule off.",
    )
    audit_retention_days: StrictInt = Field(
        400,
        ge=1,
        le=3650,
        description="Days after which entries of the audit log are deleted.",
    )
    require_login: StrictBool = Field(
        True,
        description="Whether management requires a credential. Security: needs `currentPassword`.",
    )
    brute_force_protection: StrictBool = Field(
        True,
        description="Whether wrong passwords lock an address. Security: needs `currentPassword`.",
    )
    cors_origins: list[StrictStr] = Field(
        [],
        max_length=ORIGINS_MAX,
        description="Origins whose pages may call `/v1`, `/v1beta` and the scraping API with a key. "
        "Security: needs `currentPassword`.",
    )
    oidc_issuer: StrictStr | None = Field(
        None,
        max_length=2048,
        description="Identity provider that people sign in at: its issuer, an https address. "
        "`SERVICE_OIDC_ISSUER` wins, with its client. Security: needs `currentPassword`.",
    )
    oidc_client_id: StrictStr | None = Field(
        None,
        min_length=1,
        max_length=1024,
        description="The gateway's client id at the identity provider. Security: needs `currentPassword`.",
    )
    # Holds the sealed secret; only a request body has it in clear text.
    oidc_client_secret: Secret | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="The gateway's secret at the identity provider, shown as `***`; none for a public "
        "client. Security: needs `currentPassword`.",
    )
    oidc_local_auth_disabled: StrictBool = Field(
        False,
        description="Whether people sign in at the identity provider only. "
        "`SERVICE_OIDC_LOCAL_AUTH_DISABLED=true` wins. Security: needs `currentPassword`.",
    )
    account_strategy: AccountStrategy = Field(
        "p2c",
        description="How calls are shared among connections of one provider and one priority: `p2c`, "
        "`fill-first`, `round-robin`, `weighted`, `least-used` or `sticky`.",
    )
    account_strategies: dict[ProviderId, AccountStrategy] = Field(
        {},
        max_length=500,
        description="Strategies of single providers, by a catalogue id, or a node's id or prefix; the others have "
        "`accountStrategy`.",
    )
    guardrail_pii_masker: GuardrailAction = Field(
        "warn", description="Action for personal data in requests."
    )
    guardrail_prompt_injection: Literal["warn", "block"] = Field(
        "warn", description="Action for prompt injection in requests."
    )
    guardrail_credential_masker: GuardrailAction = Field(
        "warn", description="Action for credentials in requests."
    )
    guardrail_answer_pii_masker: AnswerAction = Field(
        "off", description="Action for personal data in answers."
    )
    guardrail_answer_credential_masker: AnswerAction = Field(
        "off", description="Action for credentials in answers."
    )
    scrape_model: StrictStr | None = Field(
        None,
        min_length=1,
        max_length=300,
        description="The model that extracts and summarizes when `options.model` names none.",
    )
    scrape_robots: StrictBool = Field(True, description="Whether scraping obeys `robots.txt`.")
    scrape_browser: Literal["never", "auto"] = Field(
        "never",
        description="Whether a page whose HTML is a shell that its scripts fill is read with a browser, where a scrape "
        "does not say: `auto` or `never`.",
    )
    scrape_may_ignore_robots: StrictBool = Field(
        False, description="Whether a crawl may ignore `robots.txt` with `ignoreRobotsTxt`."
    )
    scrape_host_delay_ms: StrictInt = Field(
        200,
        ge=0,
        le=60_000,
        description="Milliseconds between two requests to one host; `Crawl-delay` may ask for more.",
    )
    scrape_host_concurrency: StrictInt = Field(
        2, ge=1, le=32, description="Requests to one host at once."
    )
    scrape_requests_per_minute: StrictInt = Field(
        600,
        ge=0,
        le=1_000_000,
        description="Calls of the scraping API for each key; 0 is no limit.",
    )
    scrape_expensive_per_minute: StrictInt = Field(
        20,
        ge=0,
        le=1_000_000,
        description="Calls of the scraping API that read pages or start something, for each key; 0 is no limit.",
    )
    scrape_crawls_per_minute: StrictInt = Field(
        10, ge=0, le=1_000_000, description="Crawls that each key starts; 0 is no limit."
    )
    scrape_status_per_minute: StrictInt = Field(
        600,
        ge=0,
        le=1_000_000,
        description="Calls of the scraping API that only show or delete something, for each key; 0 is no limit.",
    )
    scrape_requests_per_day: StrictInt = Field(
        0,
        ge=0,
        le=100_000_000,
        description="Calls of the scraping API that do something, for each key and UTC day; 0 is no limit.",
    )
    scrape_search_url: StrictStr | None = Field(
        None,
        min_length=8,
        max_length=2000,
        description="A SearXNG instance that answers `/api/search`, such as https://search.example.",
    )
    scrape_retention_hours: StrictInt = Field(
        24, ge=1, le=720, description="Hours that jobs and their pages are kept after their end."
    )
    scrape_cache_mb: StrictInt = Field(
        1024,
        ge=1,
        le=1_048_576,
        description="MiB of scraped pages that are kept to be given again; of one key at most a quarter of it. "
        "The oldest go.",
    )
    storage_owner_mb: StrictInt = Field(
        4096,
        ge=1,
        le=1_048_576,
        description="MiB of kept responses, scraping jobs, their pages and saved calls for each key.",
    )
    storage_mb: StrictInt = Field(
        32_768,
        ge=1,
        le=16_777_216,
        description="MiB of kept responses, scraping jobs, their pages and saved calls of all keys together.",
    )
    file_storage_owner_mb: StrictInt = Field(
        20_480, ge=1, le=16_777_216, description="MiB of files for each key."
    )
    file_storage_mb: StrictInt = Field(
        204_800,
        ge=1,
        le=1_073_741_824,
        description="MiB of files of all keys together; the disk's last 256 MiB stay free whatever it is.",
    )
    semantic_cache_enabled: StrictBool = Field(
        True, description="Whether answers to deterministic requests are kept and given again."
    )
    semantic_cache_ttl_ms: StrictInt = Field(
        1_800_000,
        ge=1_000,
        le=2_592_000_000,
        description="Milliseconds for which a kept answer is given.",
    )
    semantic_cache_memory_mb: StrictInt = Field(
        64, ge=1, le=16_384, description="MiB of kept answers in the memory of a relay worker."
    )
    semantic_cache_disk_mb: StrictInt = Field(
        256,
        ge=0,
        le=1_048_576,
        description="MiB of kept answers on disk, where they outlive a restart; 0 keeps none.",
    )
    semantic_cache_shared_mb: StrictInt = Field(
        64,
        ge=0,
        le=1_048_576,
        description="MiB of kept answers in the store that relay workers share (`FAIRLEAD_SHARED_URL`), "
        "of all workers together; 0 keeps none there.",
    )
    vector_cache_enabled: StrictBool = Field(
        False,
        description="Whether a question that means the same as a kept one is answered with its "
        "answer. Needs the extra `vectors`.",
    )
    vector_cache_threshold: StrictFloat = Field(
        0.8,
        ge=0.5,
        le=1,
        description="The minimum similarity of two questions, which must also agree in every word that counts.",
    )

    compression_mode: StrictStr = Field(
        "off",
        min_length=1,
        max_length=100,
        description="The pipeline that shortens conversations: a mode (`off`, `lite`, `standard`, `aggressive`, "
        "`ultra`, `rtk`, `stacked`) or one of `/api/context/combos`.",
    )
    compression_automatic_tokens: StrictInt = Field(
        0,
        ge=0,
        le=100_000_000,
        description="Tokens from which `compressionAutomaticMode` is taken instead; 0 is never.",
    )
    compression_automatic_mode: StrictStr = Field(
        "standard",
        min_length=1,
        max_length=100,
        description="The pipeline for conversations from `compressionAutomaticTokens` on.",
    )
    compression_languages: list[StrictStr] = Field(
        [],
        max_length=20,
        description="Languages in which empty phrases go, of `/api/compression/language-packs`; none means all.",
    )
    compression_rtk_level: Literal["by-mode", CompressionLevel] = Field(
        "by-mode", description="How strongly outputs of commands are filtered."
    )
    compression_raw_output_bytes: StrictInt = Field(
        0,
        ge=0,
        le=100 * 1024**3,
        description="Maximum size of stored outputs before filters shortened them, each for the key "
        "that sent it; 0 stores none.",
    )
    compression_raw_output_hours: StrictInt = Field(
        24, ge=1, le=720, description="How long such an output is kept after it was sent last."
    )
    thinking_budget_mode: Literal["passthrough", "auto-strip", "custom", "adaptive"] = Field(
        "passthrough", description="Get how requests with reasoning settings are rewritten."
    )
    thinking_budget_tokens: StrictInt = Field(
        8_192,
        ge=0,
        le=1_000_000,
        description="Tokens that a model may think with `custom`, or at most with `adaptive`; 0 switches it off.",
    )
    system_prompt_prefix: StrictStr = Field(
        "",
        max_length=50_000,
        description="Text before what callers tell models about their part.",
    )
    system_prompt_suffix: StrictStr = Field(
        "",
        max_length=50_000,
        description="Text after what callers tell models about their part.",
    )
    context_window_policy: Literal["pass", "refuse", "trim"] = Field(
        "pass",
        description="How a request that is longer than its model's window is handled: it is sent, "
        "refused, or its oldest messages are left out.",
    )
    unpriced_models: Literal["allow", "refuse"] = Field(
        "allow",
        description="How calls to models without a price are handled, for keys with a limit in USD: "
        "`allow` permits them at no cost, `refuse` answers 403. `unpricedModels` of a key "
        "takes precedence.",
    )

    bare_models: Literal["resolve", "refuse"] = Field(
        "resolve",
        description="A model's name without a provider's prefix, such as `gpt-4o`: `resolve` calls the model "
        "where exactly one provider that the key may use lists it, `refuse` answers 404.",
    )

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, origins: list[str]) -> list[str]:
        return list(dict.fromkeys(spell_origin(origin) for origin in origins))

    @field_validator("oidc_issuer")
    @classmethod
    def _is_web_address(cls, text: str | None) -> str | None:
        return web_address(text) if text is not None else None


# Changing one of these needs the current password.
SECURITY_SETTINGS = frozenset(
    {
        "require_login",
        "brute_force_protection",
        "cors_origins",
        "oidc_issuer",
        "oidc_client_id",
        "oidc_client_secret",
        "oidc_local_auth_disabled",
    }
)

# Fields that only people change; the route table names the same fields (`rust/core/src/routes/people.rs`).
PEOPLES_SETTINGS = SECURITY_SETTINGS | {
    name for name in OperatorSettings.model_fields if name.startswith("capture_bodies")
}


def read_operator_settings(con: Connection) -> OperatorSettings:
    """The settings in force: stored values over defaults."""
    rows = con.execute("SELECT name, value FROM operator_settings").fetchall()
    known = OperatorSettings.model_fields
    return OperatorSettings.model_validate(
        {name: json.loads(value) for name, value in rows if name in known},
        by_alias=False,
        by_name=True,
    )


def write_operator_settings(con: Connection, settings: OperatorSettings) -> None:
    """Stores every setting, in the writer."""
    con.execute("DELETE FROM operator_settings")
    con.executemany(
        "INSERT INTO operator_settings (name, value) VALUES (?, ?)",
        [[name, json.dumps(_stored(value))] for name, value in settings.model_dump().items()],
    )


def _stored(value: object) -> object:
    return value.get_secret_value() if isinstance(value, SecretStr) else value
