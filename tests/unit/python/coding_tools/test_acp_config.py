"""Which tools may be started, and what keeps a gateway from starting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairlead.coding_tools.acp.config import acp_document
from fairlead.coding_tools.acp.provider import AcpProvider
from fairlead.coding_tools.catalogue import catalogue
from fairlead.errors import Refusal
from fairlead.settings import ControlConfig
from fairlead.settings.serve import ServeSettings
from fairlead.store.sealer import Sealer


def settings(**fields: object) -> ServeSettings:
    return ServeSettings.load(**{"acp_allow_root": True, **fields})


def test_none_may_be_started_unless_named() -> None:
    assert acp_document(settings()) is None


def test_named_tools_and_variables_are_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_KEY", "secret")
    document = acp_document(
        settings(acp_tools="qwen, opencode,qwen", acp_environment="TOOL_KEY,UNSET_NAME")
    )
    assert document is not None
    assert document["tools"] == ["qwen", "opencode"]
    assert document["environment"] == {"TOOL_KEY": "secret"}
    assert document["permissions"] == "refuse"


@pytest.mark.parametrize("name", ["nonsense", "kilo", "aider", "/bin/sh", "../qwen"])
def test_only_tools_of_the_table_are_started(name: str) -> None:
    with pytest.raises(Refusal, match="name some of claude, cline, codex"):
        acp_document(settings(acp_tools=name))


def test_root_is_refused_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Refusal, match="FAIRLEAD_ACP_ALLOW_ROOT"):
        acp_document(settings(acp_tools="qwen", acp_allow_root=False))


def test_an_address_for_everybody_asks_for_keys() -> None:
    public = {"acp_tools": "qwen", "host": "0.0.0.0"}
    with pytest.raises(Refusal, match="REQUIRE_API_KEY"):
        acp_document(settings(**public))
    assert acp_document(settings(**public, require_api_key=True)) is not None


def test_a_workspace_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="FAIRLEAD_ACP_WORKSPACE"):
        acp_document(settings(acp_tools="qwen", acp_workspace=tmp_path / "none"))


def test_variables_are_names_without_values() -> None:
    with pytest.raises(Refusal, match="FAIRLEAD_ACP_ENVIRONMENT"):
        settings(acp_environment="KEY=value")


def test_every_command_belongs_to_a_tool_that_may_be_started() -> None:
    able = {each.id for each in catalogue().values() if each.acp is not None}
    assert {"claude", "codex", "opencode", "qwen", "goose"} <= able
    assert all(catalogue()[name].acp_spawnable for name in able)


def test_the_connection_is_made_where_control_was_told_of_it(tmp_path: Path) -> None:
    base = {"link_token": "x" * 16, "control_socket": tmp_path / "s", "acp_tools": "qwen"}
    sealer = Sealer(bytes(32))
    assert AcpProvider.of(ControlConfig(**base), sealer, 7) is None
    told = ControlConfig(**base, acp_url="http://127.0.0.1:9/v1", acp_token="t" * 32)
    provider = AcpProvider.of(told, sealer, 7)
    assert provider is not None
    connection = provider.connection()
    assert connection["sends_session"] is True
    assert "t" * 32 not in repr(connection)
    assert [each["id"] for each in provider.models()] == ["acp/qwen"]
