"""Flags over environment over defaults; what must not start is refused in one sentence."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from fairlead.errors import Refusal
from fairlead.process.placeholder_password import PLACEHOLDERS
from fairlead.process.setting_names import variable_of
from fairlead.process.tracing import Batching
from fairlead.settings import ControlConfig, ServeFields
from fairlead.settings.serve import ServeSettings

KEY = base64.b64encode(b"k" * 32).decode()
# Parts of control's document that the supervisor makes for each start.
MADE = {"link_token": "t" * 32, "control_socket": "/run/control.sock", "setup_token": None}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ServeFields.model_fields:
        monkeypatch.delenv(variable_of(name), raising=False)


def refusal(**flags: object) -> str:
    with pytest.raises(Refusal) as caught:
        ServeSettings.load(**flags).check()
    assert "\n" not in caught.value.sentence
    return caught.value.sentence


def test_defaults_are_a_loopback_gateway() -> None:
    settings = ServeSettings.load()
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 20128, 1)
    assert settings.data_dir == Path.home() / ".fairlead"
    settings.check()


def test_flags_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_PORT", "1001")
    monkeypatch.setenv("FAIRLEAD_HOST", "::1")
    monkeypatch.setenv("REQUIRE_API_KEY", "true")
    monkeypatch.setenv("INITIAL_PASSWORD", "secret words")
    monkeypatch.setenv("FAIRLEAD_MAX_IN_FLIGHT", "")
    settings = ServeSettings.load(port=1002, host=None)
    assert (settings.port, settings.host, settings.require_api_key) == (1002, "::1", True)
    assert settings.max_in_flight == 10_000
    assert settings.initial_password is not None
    assert settings.initial_password.get_secret_value() == "secret words"
    assert "secret words" not in repr(settings)


def test_the_identity_provider_is_named_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_OIDC_ISSUER", "https://id.example/realms/one/")
    monkeypatch.setenv("SERVICE_OIDC_CLIENT_ID", "fairlead")
    monkeypatch.setenv("SERVICE_OIDC_CLIENT_SECRET", "canary of a secret")
    monkeypatch.setenv("SERVICE_TRUST_PROXY", "1")
    settings = ServeSettings.load()
    settings.check()
    # An issuer is compared byte for byte, so its last slash stays.
    assert settings.service_oidc_issuer == "https://id.example/realms/one/"
    assert settings.service_trust_proxy is True
    assert "canary" not in repr(settings)
    told = settings.control_config()
    assert told["service_oidc_client_secret"] == "canary of a secret"
    relay = settings.relay_config(version="0")
    assert "canary" not in str(relay)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"port": 0}, "--port (FAIRLEAD_PORT)"),
        ({"service_oidc_issuer": "https://id.example"}, "SERVICE_OIDC_CLIENT_ID"),
        ({"service_oidc_client_id": "fairlead"}, "SERVICE_OIDC_ISSUER"),
        ({"service_oidc_local_auth_disabled": True}, "SERVICE_OIDC_ISSUER"),
        ({"service_oidc_issuer": "http://id.example"}, "SERVICE_OIDC_ISSUER: must be an https"),
        ({"service_oidc_issuer": "https://id.example?x"}, "SERVICE_OIDC_ISSUER"),
        ({"service_oidc_issuer": "id.example"}, "SERVICE_OIDC_ISSUER"),
        ({"service_public_base_url": "http://gw.example"}, "SERVICE_PUBLIC_BASE_URL"),
        ({"service_public_base_url": "https://u@gw.example"}, "SERVICE_PUBLIC_BASE_URL"),
        ({"service_public_base_url": "https://gw.example:x"}, "SERVICE_PUBLIC_BASE_URL"),
        ({"port": 65536}, "--port (FAIRLEAD_PORT)"),
        ({"port": "http"}, "--port (FAIRLEAD_PORT)"),
        ({"workers": 0}, "--workers (FAIRLEAD_WORKERS)"),
        ({"workers": 2}, "FAIRLEAD_SHARED_URL"),
        ({"shared_url": "http://c2hvcnQ@h"}, "FAIRLEAD_SHARED_URL: must begin with redis://"),
        ({"shared_url": "redis://:c2hvcnQ@"}, "FAIRLEAD_SHARED_URL: must name a host"),
        ({"shared_url": "redis://:c2hvcnQ@h:0"}, "FAIRLEAD_SHARED_URL: the port"),
        ({"shared_url": "redis://:c2hvcnQ@h:x"}, "FAIRLEAD_SHARED_URL: the port"),
        ({"shared_url": "valkey://h/c2hvcnQ"}, "FAIRLEAD_SHARED_URL: the path"),
        ({"shared_url": "rediss://h/0?ssl=no"}, "FAIRLEAD_SHARED_URL: must end"),
        ({"shared_url": "redis://h:1,:2"}, "FAIRLEAD_SHARED_URL: must name a host"),
        ({"shared_url": "redis://h:1,i:x"}, "FAIRLEAD_SHARED_URL: the port"),
        ({"shared_url": "redis://h:1,i:2/1"}, "FAIRLEAD_SHARED_URL: a cluster has database 0"),
        (
            {"shared_url": "redis://h:1/1?cluster=true"},
            "FAIRLEAD_SHARED_URL: a cluster has database 0",
        ),
        ({"shared_on_loss": "pray"}, "FAIRLEAD_SHARED_ON_LOSS"),
        ({"secret_key": "c2hvcnQ="}, "FAIRLEAD_SECRET_KEY"),
        ({"secret_key": "not base64"}, "openssl rand -base64 32"),
        ({"heartbeat_ms": 1}, "FAIRLEAD_HEARTBEAT_MS"),
        ({"require_api_key": "perhaps"}, "REQUIRE_API_KEY"),
        ({"tls_key": "/nowhere"}, "--tls-certificate"),
        ({"tls_certificate": "/nowhere"}, "--tls-key"),
        ({"tls_certificate": "/nowhere", "tls_key": "/nowhere"}, "cannot be read"),
    ],
)
def test_a_wrong_value_is_refused_by_name(flags: dict[str, object], named: str) -> None:
    sentence = refusal(**flags)
    assert named in sentence
    assert "c2hvcnQ" not in sentence


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_public_bind_needs_keys_and_a_password_of_ones_own(host: str) -> None:
    own = {"require_api_key": True, "initial_password": "three odd words"}
    assert "REQUIRE_API_KEY=true" in refusal(host=host)
    assert "INITIAL_PASSWORD is not set" in refusal(host=host, require_api_key=True)
    for placeholder in (*PLACEHOLDERS, "ChangeMe", " password "):
        assert "placeholder" in refusal(host=host, **{**own, "initial_password": placeholder})
    ServeSettings.load(host=host, **own).check()
    ServeSettings.load(host=host, require_api_key=True).check(password_stored=True)
    ServeSettings.load(host=host, allow_unauthenticated_bind=True).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"])
def test_a_loopback_bind_needs_nothing(host: str) -> None:
    settings = ServeSettings.load(host=host)
    settings.check()
    assert settings.is_loopback


def test_the_relay_knows_by_which_names_it_is_called() -> None:
    def names(**flags: object) -> object:
        return ServeSettings.load(**flags).relay_config(version="0")["host_names"]

    public = {"service_public_base_url": "https://Gateway.example:8443/x"}
    assert names(host_names=" fairlead,gw.lan ", **public) == [
        "fairlead",
        "gw.lan",
        "gateway.example",
    ]
    assert names(host="inner.lan") == ["inner.lan"]
    assert names(host="::1", service_public_base_url="https://10.0.0.1/") == []
    for wrong in ("http://x", "x:80", "*.x", "a..b"):
        assert "FAIRLEAD_HOST_NAMES" in refusal(host_names=wrong), wrong


def test_both_planes_get_what_the_contract_says(tmp_path: Path) -> None:
    settings = ServeSettings.load(data_dir=tmp_path, secret_key=KEY, initial_password="words")
    assert settings.relay_config(version="0.1.0") == {
        "data_dir": str(tmp_path),
        "require_api_key": False,
        "loopback_only": True,
        "trusted_proxies": 0,
        "max_open_streams": 10_000,
        "max_in_flight": 10_000,
        "heartbeat_ms": 15_000,
        "drain_ms": 30_000,
        "drain_delay_ms": 0,
        "body_idle_ms": 30_000,
        "socket_life_ms": 7_200_000,
        "host_names": [],
        "version": "0.1.0",
        "tracing": None,
    }
    control = ControlConfig.model_validate(settings.control_config() | MADE)
    assert control.data_dir == tmp_path
    assert control.secret_key is not None
    assert control.secret_key.get_secret_value() == KEY
    assert control.initial_password is not None
    assert control.initial_password.get_secret_value() == "words"
    assert str(control.control_socket) == MADE["control_socket"]
    assert control.tracing is None


def test_both_planes_are_told_of_traces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "7")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "soon")
    settings = ServeSettings.load(data_dir=tmp_path)
    relay = settings.relay_config(version="0")
    assert relay["tracing"] == {"ratio": 0.5, "parent_based": False}
    control = ControlConfig.model_validate(settings.control_config() | MADE)
    assert control.tracing == Batching(queue_max=7, batch_max=512, every_ms=5000)


def test_a_password_that_nobody_could_sign_in_with_is_refused() -> None:
    assert "200 characters" in refusal(initial_password="x" * 201)
    assert "UTF-8" in refusal(initial_password="caf\udce9 and more")
    ServeSettings.load(initial_password="\N{SNOWMAN}" * 200).check()


def test_agents_are_protected_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two underscores stand between the group and the field."""
    monkeypatch.setenv("AUTH__ENABLED", "true")
    monkeypatch.setenv("AUTH__PROVIDER", "hydra")
    monkeypatch.setenv("ISSUER__ADMIN_URL", "https://hydra:4445/")
    monkeypatch.setenv("ISSUER__PUBLIC_URL", "https://hydra.example")
    monkeypatch.setenv("ISSUER__ADMIN_TOKEN", "canary of a bearer")
    settings = ServeSettings.load()
    settings.check()
    assert (settings.auth_enabled, settings.auth_provider) == (True, "hydra")
    assert settings.issuer_admin_url == "https://hydra:4445"
    assert settings.issuer_own_url == "https://hydra.example"
    assert "canary" not in repr(settings)
    config = settings.control_config() | MADE
    handed = ControlConfig.model_validate(config)
    assert handed.issuer_admin_token is not None
    assert handed.issuer_admin_token.get_secret_value() == "canary of a bearer"


def test_agents_are_off_and_the_issuer_is_on_loopback_by_default() -> None:
    settings = ServeSettings.load()
    assert (settings.auth_enabled, settings.issuer_enabled) == (False, False)
    assert (settings.issuer_host, settings.issuer_port) == ("127.0.0.1", 20131)
    assert settings.issuer_admin_port == 20130
    assert settings.issuer_own_url == "http://127.0.0.1:20131"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AUTH__PROVIDER", "auth0"),
        ("AUTH__CACHE_S", "31"),
        ("AUTH__TIMEOUT_MS", "0"),
        ("ISSUER__ADMIN_URL", "ftp://x"),
        ("ISSUER__ADMIN_URL", "http://user@x"),
        ("ISSUER__PUBLIC_URL", "https://x/?a=b"),
        ("ISSUER__TOKEN_TTL_S", "59"),
        ("ISSUER__PORT", "70000"),
    ],
)
def test_a_wrong_setting_of_agents_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert refusal().startswith(name)


@pytest.mark.parametrize(
    "url", ["http://hydra:4445", "http://10.0.0.9:4445/x", "http://[2001:db8::1]"]
)
def test_access_tokens_do_not_cross_a_network_in_clear(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("AUTH__ENABLED", "true")
    monkeypatch.setenv("ISSUER__ADMIN_URL", url)
    monkeypatch.setenv("ISSUER__PUBLIC_URL", "https://issuer.example")
    said = refusal()
    assert said.startswith("ISSUER__ADMIN_URL")
    assert "https" in said
    for right in ("https://hydra:4445", "http://localhost:4445", "http://[::1]:4445"):
        monkeypatch.setenv("ISSUER__ADMIN_URL", right)
        ServeSettings.load().check()


def test_protection_without_an_issuer_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTH__ENABLED", "true")
    assert "ISSUER__ADMIN_URL" in refusal()
    monkeypatch.setenv("ISSUER__ADMIN_URL", "http://127.0.0.1:20130")
    assert "ISSUER__PUBLIC_URL" in refusal()
    monkeypatch.delenv("ISSUER__ADMIN_URL")
    monkeypatch.setenv("ISSUER__ENABLED", "true")
    ServeSettings.load().check()
