"""Roles of nodes: what each needs, what it refuses, and that each refusal names the setting, the rule and the fix."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from fairlead.errors import Refusal
from fairlead.net.node_link import NodeAddress, check_node_token, read_control_urls, read_listen
from fairlead.serve.controls import Controls
from fairlead.serve.role import check_role, tunnel_document, with_node_token
from fairlead.settings.serve import ServeSettings
from tests.support.authority import Authority

TOKEN = "0123456789abcdef0123456789abcdef"
KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
RELAY = {
    "role": "relay",
    "control_urls": "https://10.0.0.5:20129, https://[2001:db8::1]:20129/",
    "node_token": TOKEN,
    "secret_key": KEY,
}


def load(**given: object) -> ServeSettings:
    settings = with_node_token(ServeSettings.load(**given))
    check_role(settings)
    return settings


def test_without_a_role_nothing_is_different() -> None:
    settings = load()
    assert settings.role == "all"
    assert tunnel_document(settings) is None
    assert "keeps_snapshot" not in settings.relay_config(version="1")


def test_a_relay_reaches_every_control() -> None:
    settings = load(**RELAY)
    document = tunnel_document(settings)
    assert document is not None
    assert document["listen"] is None
    assert document["controls"] == [
        {"host": "10.0.0.5", "port": 20129},
        {"host": "2001:db8::1", "port": 20129},
    ]
    assert settings.relay_config(version="1")["keeps_snapshot"] is True
    assert TOKEN not in repr(settings)


def test_a_control_listens(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    issued = authority.issue("control", "IP:10.0.0.5")
    given = {
        "role": "control",
        "control_listen": "[::1]:20129",
        "node_token": TOKEN,
        "node_certificate": issued.certificate,
        "node_key": issued.key,
        "node_ca": authority.certificate,
        "database_url": "postgresql://localhost/fairlead",
    }
    document = tunnel_document(load(**given))
    assert document is not None
    assert document["listen"] == {"host": "::1", "port": 20129}
    for changed, words in (
        ({"node_key": authority.certificate}, "PEM files"),
        ({"node_ca": tmp_path / "none"}, "PEM files"),
        ({"database_url": None}, "set FAIRLEAD_DATABASE_URL"),
        ({"control_listen": None}, "set FAIRLEAD_CONTROL_LISTEN"),
        ({"workers": 2, "shared_url": "redis://localhost"}, "leave it out"),
        ({"host": "0.0.0.0"}, "FAIRLEAD_CONTROL_LISTEN"),
        ({"demo": True}, "leave it out"),
        ({"control_urls": "https://10.0.0.6:1"}, "FAIRLEAD_CONTROL_URLS is set"),
    ):
        with pytest.raises(Refusal) as refusal:
            load(**(given | changed))
        assert words in refusal.value.sentence, refusal.value.sentence


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"control_urls": None}, "set FAIRLEAD_CONTROL_URLS"),
        ({"control_urls": "http://10.0.0.5:20129"}, "FAIRLEAD_CONTROL_URLS: must be https://"),
        ({"control_urls": "https://10.0.0.5"}, "must be https://host:port"),
        ({"control_urls": "https://10.0.0.5:99999"}, "must be https://host:port"),
        ({"control_urls": "https://u:p@10.0.0.5:20129"}, "must be https://host:port"),
        ({"control_urls": "https://10.0.0.5:20129/api"}, "must be https://host:port"),
        ({"control_urls": ","}, "must name 1 to 16 controls"),
        ({"node_token": None}, "set FAIRLEAD_NODE_TOKEN"),
        ({"node_token": "short-canary"}, "openssl rand -hex 32"),
        ({"node_token": TOKEN + " "}, "without spaces"),
        ({"secret_key": None}, "set FAIRLEAD_SECRET_KEY"),
        ({"database_url": "postgresql://localhost/fairlead"}, "FAIRLEAD_DATABASE_URL is set"),
        ({"node_certificate": Path("/nowhere")}, "set both"),
        ({"role": "all"}, "FAIRLEAD_CONTROL_URLS is set"),
        ({"role": "leader"}, "--role (FAIRLEAD_ROLE)"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(changed: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal) as refusal:
        load(**{name: value for name, value in (RELAY | changed).items() if value is not None})
    assert words in refusal.value.sentence, refusal.value.sentence
    assert "canary" not in refusal.value.sentence


def test_the_token_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    from_file = {**RELAY, "node_token_file": file}
    del from_file["node_token"]
    token = load(**from_file).node_token
    assert token is not None
    assert token.get_secret_value() == TOKEN
    with pytest.raises(Refusal, match="leave one of them"):
        load(**(RELAY | {"node_token_file": file}))
    file.write_text("canary")
    with pytest.raises(Refusal, match="32 to 512") as refusal:
        load(**from_file)
    assert "canary" not in refusal.value.sentence
    with pytest.raises(Refusal, match="cannot be read"):
        load(**(from_file | {"node_token_file": tmp_path / "none"}))


def test_addresses_are_read_and_refused() -> None:
    assert str(read_listen("0.0.0.0:1")) == "0.0.0.0:1"
    assert str(read_listen("[::]:20129")) == "[::]:20129"
    for wrong in ("10.0.0.5", "10.0.0.5:0", ":20129", "a:b"):
        with pytest.raises(ValueError, match="address and a port"):
            read_listen(wrong)
    assert read_control_urls("https://a:1") == [NodeAddress("a", 1)]
    with pytest.raises(ValueError, match="ASCII"):
        check_node_token("ä" * 40)


def test_a_control_that_failed_is_left_and_the_next_is_used() -> None:
    addresses = [NodeAddress("a", 1), NodeAddress("b", 1), NodeAddress("c", 1)]
    controls = Controls(addresses, ssl.create_default_context())
    first, second, third = controls.in_order()
    controls.failed(first, "gone")
    assert controls.in_order() == [second, third, first]
    controls.use(second)
    assert controls.in_order() == [second, third, first]
    controls.failed(second, "gone")
    controls.failed(third, "gone")
    # All failed: each is tried all the same.
    assert controls.in_order() == [second, third, first]
