"""The provider in force: one as long as the settings stay, another when they change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr

from fairlead.identity.oidc.provider import LEFT_MAX, Providers
from fairlead.store.sign_on import SignOn

pytestmark = pytest.mark.anyio

HERE = SignOn("https://id.example", "fairlead", SecretStr("s"), local_auth_disabled=False)


async def test_it_is_made_once_and_anew_when_it_is_another() -> None:
    providers = Providers()
    assert await providers.of(SignOn()) is None
    first = await providers.of(HERE)
    assert first is not None
    # Whether passwords count beside it is nothing to it.
    assert await providers.of(replace(HERE, local_auth_disabled=True)) is first
    for changed in (
        replace(HERE, issuer="https://other.example"),
        replace(HERE, client_id="other"),
        replace(HERE, client_secret=SecretStr("t")),
        replace(HERE, client_secret=None),
    ):
        other = await providers.of(changed)
        assert other is not None
        assert other is not first
        assert (other.issuer, other.client_id) == (changed.issuer, changed.client_id)
    await providers.close()


async def test_those_before_stay_open_for_a_while_and_are_bounded() -> None:
    providers = Providers()
    made = [await providers.of(replace(HERE, client_id=f"c{number}")) for number in range(5)]
    open_ = [not provider._http.is_closed for provider in made if provider is not None]
    assert open_ == [False] * (5 - 1 - LEFT_MAX) + [True] * (1 + LEFT_MAX)
    await providers.close()
    assert all(provider is not None and provider._http.is_closed for provider in made)


def test_a_secret_is_not_printed() -> None:
    assert "'s'" not in repr(HERE)
