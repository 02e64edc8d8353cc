"""`docs/reference/providers.md`, written from the catalogue.

`make reference` writes it; a test compares the page with the catalogue.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from fairlead.gateway.providers.catalogue import CatalogueProvider, catalogue

HEAD = """\
# Built-in providers

Written from the catalogue by `make reference`: one file each in `python/fairlead/data/catalogue/`.
Adding a provider is adding a file. Prices and sizes are as of the date; what a connection's test
finds, and what an operator says, go before them. Parts in braces are fields of
`providerSpecificData`; `{host}` depends on the region. "and 2 more" means APIs that [serve some of the
models](../how-to/add-a-provider.md#one-connection-for-all-models-of-a-cloud).

| id | name | dialect | credential | address | models | tells usage | as of |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""

_CREDENTIALS = {
    "bearer": "`apiKey`",
    "x-api-key": "`apiKey`",
    "x-goog-api-key": "`apiKey`",
    "api-key": "`apiKey`, or `entraApp`",
    "aws-sigv4": "`awsKeys`, `apiKey`, or the machine's own",
    "google-service-account": "`serviceAccount`, `apiKey` (an access token), or the machine's own",
    "none": "none, or `apiKey`",
}


def provider_reference() -> str:
    """The text of the page."""
    return HEAD + "".join(_row(each) for each in catalogue().values())


def _row(provider: CatalogueProvider) -> str:
    modes = Counter(model.mode for model in provider.models)
    models = ", ".join(f"{count} {mode}" for mode, count in modes.items())
    usual = ", ".join(f"{name}: {value}" for name, value in provider.variables.items() if value)
    cells = (
        f"`{provider.id}`",
        provider.name,
        provider.dialect,
        _CREDENTIALS[provider.auth],
        f"`{provider.base_url}`{f' ({usual})' if usual else ''}{_apis(provider)}",
        models or "as it lists them",
        _usage(provider),
        provider.as_of,
    )
    return f"| {' | '.join(cells)} |\n"


def _apis(provider: CatalogueProvider) -> str:
    return f" and {len(provider.apis)} more" if provider.apis else ""


def _usage(provider: CatalogueProvider) -> str:
    if provider.usage is None:
        return ""
    own = [read.own_key for read in provider.usage.reads]
    return (
        "to an administrator's key"
        if all(own)
        else "yes, more to such a key"
        if any(own)
        else "yes"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(provider_reference(), encoding="utf-8")
