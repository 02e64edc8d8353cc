"""Every stored secret has its destinations: where it may be sent, what holds it there, and which test tries to
move it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Final

import pytest

from fairlead.errors import Internal, InvalidRequest
from fairlead.net.secret_origin import check_given_for, is_given_for, spell_origins
from fairlead.store.reseal import COLUMNS
from fairlead.store.sealer import Sealer
from tests.support.databases import open_fresh_database

pytestmark = pytest.mark.anyio

TESTS: Final = Path(__file__).parents[2]
KEPT: Final = "python/providers/test_kept_secrets.py"
# `origins`: a column beside the secret names the origins that it was given for, and each use is checked against it.
# `address`: the secret has one address; a change of the address asks for the secret again.
# `shipped`: it goes to an address of the catalogue, which no caller changes.
# `nowhere`: it never leaves; it signs, or is compared.
DESTINATIONS: Final[dict[tuple[str, str], tuple[str, str, str]]] = {
    ("provider_connections", "credentials_sealed"): (
        "address",
        KEPT,
        "test_a_connections_key_stays_with_its_host",
    ),
    ("provider_nodes", "headers_sealed"): (
        "address",
        KEPT,
        "test_a_nodes_new_address_gets_neither_headers_nor_keys",
    ),
    ("provider_clients", "secret_sealed"): (
        "secret_origins",
        "python/sign_in/test_origins.py",
        "test_an_address_that_was_empty_in_between_gets_no_secret",
    ),
    ("provider_sign_ins", "refresh_sealed"): (
        "refresh_origins",
        "python/sign_in/test_origins.py",
        "test_refresh_tokens_stay_with_who_gave_them",
    ),
    ("provider_sign_in_flows", "secret_sealed"): (
        "origins",
        "python/sign_in/test_origins.py",
        "test_a_sign_in_ends_where_it_was_begun",
    ),
    ("provider_usage", "key_sealed"): ("shipped", "", ""),
    ("scrape_jobs", "secrets_sealed"): (
        "address",
        "python/scrape/test_page_options.py",
        "test_headers_and_cookies_are_sent_to_the_page_and_never_to_another_origin",
    ),
    ("search_providers", "key_sealed"): (
        "address",
        KEPT,
        "test_a_search_providers_key_stays_with_its_host",
    ),
    ("outbound_proxies", "login_sealed"): (
        "address",
        "../integration/test_outbound_proxies.py",
        "password",
    ),
    ("mail_server", "password_sealed"): (
        "address",
        "../contract/test_mail.py",
        "for another server it must be sent again",
    ),
    ("operator_settings", "value"): (
        "address",
        "../contract/test_sign_on_settings.py",
        "oidcClientSecret",
    ),
    ("users", "totp_sealed"): ("nowhere", "", ""),
    ("users", "totp_pending_sealed"): ("nowhere", "", ""),
    ("webhook_secrets", "sealed"): ("nowhere", "", ""),
    ("webhook_signing_keys", "sealed"): ("nowhere", "", ""),
    ("meta", "value"): ("nowhere", "", ""),
}
MOVED: Final = {"secret_origins", "refresh_origins", "origins"}


async def test_every_sealed_column_has_its_destinations(tmp_path: Path) -> None:
    database = open_fresh_database(tmp_path, "state")
    try:
        columns = await database.read(
            lambda con: con.execute(
                "SELECT table_name, column_name FROM information_schema.columns"
            ).fetchall()
        )
    finally:
        await database.close()
    stored = {(table, column) for table, column in columns}
    sealed = {each for each in stored if each[1] == "sealed" or each[1].endswith("_sealed")}
    known = {(each.table, each.column) for each in COLUMNS}
    assert sealed <= known, "a sealed column that an exchange of the key leaves out"
    assert known == set(DESTINATIONS), "a stored secret without destinations"
    for (table, _), (kind, file, test) in DESTINATIONS.items():
        if kind in MOVED:
            assert (table, kind) in stored
        if file:
            assert test in (TESTS / file).read_text("utf-8"), (table, test)


def test_a_secret_that_was_given_for_nothing_goes_nowhere() -> None:
    nowhere = spell_origins([None])
    assert not is_given_for(nowhere, "https://a.example")
    given = spell_origins(["https://A.example:443/token", None, "http://127.0.0.1:8080/x"])
    assert is_given_for(given, "https://a.example/elsewhere")
    assert is_given_for(given, "http://127.0.0.1:8080")
    for url in (
        "http://a.example",
        "https://a.example:8443",
        "https://a.example.evil",
        "https://b.a.example",
    ):
        assert not is_given_for(given, url)
        with pytest.raises(InvalidRequest, match="another host"):
            check_given_for("field", given, url)
    assert is_given_for(None, "https://a.example")


def test_what_is_sealed_for_one_purpose_opens_for_no_other() -> None:
    """One value for each kind of secret, tried as every other kind: of another row, of another table."""
    sealer = Sealer(b"k" * 32)
    purposes = {
        "connection-1": b"credentials",
        "node-1": b"headers",
        "provider-client:openai": b"client secret",
        "provider-usage:connection-1": b"usage key",
        "flow-hash": b"verifier",
        "global:": b"proxy login",
        "mail-server": b"mail password",
        "user-1": b"totp",
        "webhook-secret-1": b"whsec",
        "signing-key-1": b"pem",
        "oidc-client-secret": b"oidc",
        "oidc-login": b"state of a sign-in",
    }
    sealed = {name: sealer.seal(name, secret) for name, secret in purposes.items()}
    for made, tried in itertools.product(purposes, purposes):
        if made == tried:
            assert sealer.unseal(tried, sealed[made]) == purposes[made]
            continue
        with pytest.raises(Internal):
            sealer.unseal(tried, sealed[made])
    with pytest.raises(Internal):
        Sealer(b"o" * 32).unseal("node-1", sealed["node-1"])
