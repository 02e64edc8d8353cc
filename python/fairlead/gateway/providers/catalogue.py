"""The built-in providers: one JSON file each in `fairlead/data/catalogue/`. A new file is a new
provider.

A file holds `id` (as the file is called), `name`, `dialect`, `base_url`, `auth`, `as_of` and
`source` of its figures, and `models`: `id`, `mode` where it is not chat, `context_length`,
`max_output_tokens` in tokens, `capabilities`, and `input`, `output`, `cached_input`, `cache_write`,
`cache_write_hour` as integer micro-dollars per million tokens (`per_image`, `per_second`, `per_page`, `per_query`:
micro-dollars each; `per_million_characters` that are read aloud). `tiers` are prices of tokens for
inputs above `above` tokens and for a `service` tier. `retires_on` is the day from which
the provider serves a model no more, where it has named one: it keeps its price, for what was spent,
and is in lists until then.

`variables` names what an address has in braces, each with its usual value or null where there is
none; a connection gives them in `providerSpecificData`. `models_url` says where models are listed,
where that is not `/models` below the base URL; `lists_models: false`, that they are not.
`serves` says which types of models the provider's address serves in this dialect, and which models of a type, by
patterns with `*`: a model beside them keeps its price and is in no list. Without it, all types are served that the
gateway has a route for in the dialect. `path` is where the provider has a type's call, from the host's root, where
that is not the dialect's path below the base URL.
`facts` says what the provider's models accept (`facts.py`).
`apis` lists the APIs by which some of the models are called instead (`apis.py`), and `derived` parts of addresses
that depend on a variable. `region_prefixes` says in which regions models with a prefix are served, by patterns.
`check_path` names a path that only a valid key may read, where the list of models is public.
`oauth` says how people sign in there instead of giving a key. `usage` says where the provider tells what
is used and left of a credential: addresses, and in their answers the places of the figures (JSON Pointer,
RFC 6901, where `*` is every element of a list and their values are added up).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairlead.gateway.providers.apis import ApiSection, DerivedPart, Dialect, Variable
from fairlead.gateway.providers.facts import FactSection
from fairlead.gateway.providers.price import ServiceTier

FOLDER = Path(__file__).parents[2] / "data" / "catalogue"

# The dialect's path of each type's call that a provider may have at another one.
PATHS: dict[str, str] = {
    "embedding": "/embeddings",
    "rerank": "/rerank",
    "moderation": "/moderations",
    "image": "/images/generations",
    "speech": "/audio/speech",
    "transcription": "/audio/transcriptions",
    "ocr": "/ocr",
}

Auth = Literal[
    "bearer",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "aws-sigv4",
    "google-service-account",
    "none",
]
Mode = Literal[
    "chat",
    "completion",
    "embedding",
    "image",
    "speech",
    "transcription",
    "rerank",
    "moderation",
    "ocr",
    "video",
    "realtime",
]
Capability = Literal[
    "audio_input",
    "audio_output",
    "computer_use",
    "documents",
    "parallel_tools",
    "prompt_cache",
    "reasoning",
    "structured_output",
    "tools",
    "video_input",
    "vision",
    "web_search",
]
Tokens = Annotated[int, Field(strict=True, ge=1)]
UsdMicros = Annotated[int, Field(strict=True, ge=0)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tier(_Entry):
    """Prices of tokens above a size of the input, in a service tier, or both."""

    service: ServiceTier | None = None
    above: Tokens | None = None
    input: UsdMicros | None = None
    output: UsdMicros | None = None
    cached_input: UsdMicros | None = None
    cache_write: UsdMicros | None = None
    cache_write_hour: UsdMicros | None = None


class Price(_Entry):
    """Micro-dollars per million tokens; an absent price of cached or cache-writing input is that of
    input. Micro-dollars for each thing that is no token, absent where it costs nothing.
    """

    input: UsdMicros = 0
    output: UsdMicros = 0
    cached_input: UsdMicros | None = None
    cache_write: UsdMicros | None = None
    cache_write_hour: UsdMicros | None = None
    per_image: UsdMicros | None = None
    per_second: UsdMicros | None = None
    per_page: UsdMicros | None = None
    per_query: UsdMicros | None = None
    per_million_characters: UsdMicros | None = None
    tiers: tuple[Tier, ...] = ()


class CatalogueModel(_Entry):
    id: str
    mode: Mode = "chat"
    context_length: Tokens | None = None
    max_output_tokens: Tokens | None = None
    input: UsdMicros | None = None
    output: UsdMicros | None = None
    cached_input: UsdMicros | None = None
    cache_write: UsdMicros | None = None
    cache_write_hour: UsdMicros | None = None
    per_image: UsdMicros | None = None
    per_second: UsdMicros | None = None
    per_page: UsdMicros | None = None
    per_query: UsdMicros | None = None
    per_million_characters: UsdMicros | None = None
    tiers: tuple[Tier, ...] = ()
    retires_on: date | None = None
    capabilities: tuple[Capability, ...] = ()

    @property
    def price(self) -> Price | None:
        """A model's price; None where it is not known. Known means both prices of tokens, or a
        price of one thing.
        """
        known = {name: getattr(self, name) for name in Price.model_fields}
        known = {name: value for name, value in known.items() if value is not None}
        is_known = {"input", "output"} <= known.keys() or any(
            name.startswith("per_") for name in known
        )
        return Price(**known) if is_known else None


class OAuthSection(_Entry):
    """How people sign in at a provider whose documentation says so. The client is the operator's own,
    unless the provider has one for all (`client_id`).
    """

    client_id: str | None = None
    authorization_url: str | None = None
    token_url: str
    device_authorization_url: str | None = None
    scopes: list[str] = []
    authorize_params: dict[str, str] = {}
    source: str


Pointer = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_*-]+)+$")]


class UsageFigureSection(_Entry):
    """The position of one figure in an answer; with `each`, of one for every element of the list there. `per_unit`
    is how many of the provider's numbers make one of the unit: 100 if it counts cents.
    """

    name: str
    unit: str | None = None
    unit_at: Pointer | None = None
    each: Pointer | None = None
    used: Pointer | None = None
    limit: Pointer | None = None
    remaining: Pointer | None = None
    per_unit: Annotated[int, Field(strict=True, ge=1)] = 1

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.unit is None) == (self.unit_at is None):
            raise ValueError("a figure has a unit or a unit_at")
        if self.used is None and self.remaining is None:
            raise ValueError("a figure has a place of what is used or remains")
        return self


class UsageRead(_Entry):
    """One usage URL. `{month_s}` and `{month}` in it are the start of the month in UTC, as Unix seconds and as RFC
    3339; then the figures are those of the month. `own_key`: it needs a key that an operator sets in addition
    to the connection's. `next_page` is the position of the next page's value in an answer, for the parameter
    `page`.
    """

    url: str = Field(pattern=r"^https://[a-z0-9.-]+/")
    own_key: bool = False
    next_page: Pointer | None = None
    figures: tuple[UsageFigureSection, ...] = Field(min_length=1)


class UsageSection(_Entry):
    """The usage routes that a provider documents."""

    source: str
    reads: tuple[UsageRead, ...] = Field(min_length=1)


class Served(_Entry):
    """The models of one type that an address serves: those that fit one of `only` and none of `no`."""

    only: tuple[str, ...] = ("*",)
    no: tuple[str, ...] = ()
    path: str | None = Field(default=None, pattern=r"^/[A-Za-z0-9/_.-]+$")

    def has(self, model_id: str) -> bool:
        """Whether it serves this model."""
        fits = [fnmatchcase(model_id, pattern) for pattern in self.only]
        return any(fits) and not any(fnmatchcase(model_id, pattern) for pattern in self.no)


# The routes of a dialect, whoever the provider is.
_BY_DIALECT: dict[str, frozenset[str]] = {
    "anthropic": frozenset({"chat"}),
    "gemini": frozenset({"chat", "embedding", "video"}),
    "openai-responses": frozenset({"chat", "embedding"}),
}


class CatalogueProvider(_Entry):
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    name: str
    dialect: Dialect
    base_url: str
    auth: Auth
    as_of: str = Field(pattern=r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}$")
    source: str
    check_path: str | None = None
    variables: dict[Variable, str | None] = Field(default_factory=dict)
    models_url: str | None = None
    lists_models: bool = True
    oauth: OAuthSection | None = None
    usage: UsageSection | None = None
    # Amazon's name of the service, which is part of a signature's scope.
    aws_service: str | None = None
    serves: dict[Mode, Served] | None = None
    apis: tuple[ApiSection, ...] = ()
    # Azure: operators name the deployments of their models.
    has_deployments: bool = False
    derived: dict[str, DerivedPart] = Field(default_factory=dict)
    region_prefixes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    facts: FactSection | None = None
    models: tuple[CatalogueModel, ...]

    def is_served(self, model_id: str, mode: str) -> bool:
        """Whether the provider's address serves a model of this type by a route of the gateway."""
        api = self.api_of(model_id)
        if api is not None:
            return api.serves(model_id, mode)
        routed = _BY_DIALECT.get(self.dialect)
        if routed is not None and mode not in routed:
            return False
        if self.serves is None:
            return True
        served = self.serves.get(cast("Mode", mode))
        return served is not None and served.has(model_id)

    def is_in_region(self, model_id: str, region: str | None) -> bool:
        """Whether a model is served in a region. Names with a prefix belong to a part of the world."""
        prefix = next((each for each in self.region_prefixes if model_id.startswith(each)), None)
        if prefix is None or region is None:
            return True
        return any(fnmatchcase(region, pattern) for pattern in self.region_prefixes[prefix])

    def api_of(self, model_id: str) -> ApiSection | None:
        """The API by which a model is called; None: the provider's own dialect and address."""
        return next((api for api in self.apis if api.has(model_id)), None)


class Catalogue(Mapping[str, CatalogueProvider]):
    """The providers of a folder by id. A file is read when its provider is first asked for: an
    instance uses few of them, and all have thousands of models. `ValueError` names a file that is
    not valid.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {path.stem: path for path in sorted(folder.glob("*.json"))}
        self._read: dict[str, CatalogueProvider] = {}

    def __getitem__(self, provider_id: str) -> CatalogueProvider:
        found = self._read.get(provider_id)
        if found is None:
            found = self._read[provider_id] = _read_provider(self._files[provider_id])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, provider_id: object) -> bool:
        return provider_id in self._files


@cache
def catalogue() -> Catalogue:
    """The providers that ship with fairlead, by id."""
    return Catalogue(FOLDER)


def _read_provider(path: Path) -> CatalogueProvider:
    try:
        provider = CatalogueProvider.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path.name} is not valid: {error}") from None
    if provider.id != path.stem:
        raise ValueError(f"{path.name} describes the provider `{provider.id}`")
    return provider
