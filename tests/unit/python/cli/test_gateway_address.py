"""Which gateway a command works at, and where credentials do not go."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.chosen import CONTEXT
from fairlead.cli.context_file import GatewayContext, changed_contexts
from fairlead.cli.failure import CommandFailed
from fairlead.cli.gateway_address import find_gateway, signed_in
from fairlead.cli.options import DATA_DIR
from fairlead.errors import Refusal

REMOTE = "https://gateway.example"


@pytest.fixture(autouse=True)
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with changed_contexts() as stored:
        stored.by_name["work"] = GatewayContext(REMOTE, "flm_work")
        stored.by_name["spare"] = GatewayContext("https://spare.example", "flm_spare")
        stored.current = "work"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cli-token").write_text("local-token\n")
    return tmp_path / "data"


def test_the_context_in_use_is_where_commands_work() -> None:
    address = find_gateway(None, DATA_DIR)
    assert address.url == REMOTE
    assert address.headers("/api/keys") == {"authorization": "Bearer flm_work"}
    assert not address.is_local


def test_models_are_called_with_the_key_alone() -> None:
    address = signed_in(GatewayContext(REMOTE, "flm_work", "sk-fl-key"))
    assert address.headers("/api/keys") == {"authorization": "Bearer flm_work"}
    assert address.headers("/v1/models") == {"authorization": "Bearer sk-fl-key"}


def test_a_data_directory_means_this_machine(data_dir: Path) -> None:
    address = find_gateway(None, data_dir)
    assert address.url == "http://127.0.0.1:20128"
    assert address.headers("/api/keys") == {"x-gateway-cli-token": "local-token"}


@pytest.mark.parametrize(
    ("name", "url"), [("spare", "https://spare.example"), ("local", "http://127.0.0.1:20128")]
)
def test_a_named_context_comes_before_the_one_in_use(name: str, url: str) -> None:
    token = CONTEXT.set(name)
    try:
        assert find_gateway(None, DATA_DIR).url == url
    finally:
        CONTEXT.reset(token)


def test_an_address_takes_the_credential_of_its_context_alone(data_dir: Path) -> None:
    assert find_gateway(f"{REMOTE}/", data_dir).headers("/api/keys") == {
        "authorization": "Bearer flm_work"
    }
    with pytest.raises(Refusal, match="fairlead login"):
        find_gateway("https://gateway.example.evil", data_dir)
    with pytest.raises(Refusal, match="in clear"):
        find_gateway("http://gateway.example", data_dir)
    with pytest.raises(Refusal, match="no address"):
        find_gateway("ftp://gateway.example", data_dir)


def test_a_recorded_address_elsewhere_gets_no_token(data_dir: Path) -> None:
    (data_dir / "run").mkdir()
    (data_dir / "run" / "url").write_text("http://192.0.2.1:20128\n")
    with pytest.raises(Refusal, match="not on this machine"):
        find_gateway(None, data_dir)


def test_an_unchecked_certificate_is_said_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    address = signed_in(GatewayContext(REMOTE, "flm_secret", insecure=True))
    assert "WARNING" in capsys.readouterr().err
    assert "flm_secret" not in repr(address)


def test_authorities_that_are_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pem", Path(__file__)):
        with pytest.raises(CommandFailed, match="PEM"):
            signed_in(GatewayContext(REMOTE, "flm_secret", ca_file=str(path)))
