"""The settings of a start reach the supervisor whole, and by no way that others can read."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead.process.setting_names import variable_of
from fairlead.serve import instance as instance_module
from fairlead.serve.directory import DataDirectory
from fairlead.serve.instance import become_supervisor, take_instance
from fairlead.serve.log import LogSink
from fairlead.serve.planes import Planes
from fairlead.serve.port import Address
from fairlead.serve.start import instance_of
from fairlead.settings import ControlConfig, ServeFields
from fairlead.settings.serve import ServeSettings

KEY = base64.b64encode(b"k" * 32).decode()
PASSWORD = "canary of a password"


class Exec(Exception):
    """Raised in the place of `exec`, with its command line."""


@pytest.fixture(name="settings")
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ServeSettings:
    for name in ServeFields.model_fields:
        monkeypatch.delenv(variable_of(name), raising=False)
    return ServeSettings.load(
        data_dir=tmp_path, secret_key=KEY, initial_password=PASSWORD, port=1001, front="native"
    )


def test_settings_go_by_an_open_file_alone(
    monkeypatch: pytest.MonkeyPatch, settings: ServeSettings
) -> None:
    def execv(_path: str, command: list[str]) -> None:
        raise Exec(command)

    monkeypatch.setattr(instance_module.os, "execv", execv)
    before = dict(os.environ)
    with pytest.raises(Exec) as caught:
        become_supervisor(instance_of(settings))
    command = caught.value.args[0]
    assert PASSWORD not in str(command)
    assert os.environ == before
    descriptor = next(int(word) for word in command if word.isdecimal())
    assert os.get_inheritable(descriptor)
    taken = take_instance(descriptor)
    assert taken == instance_of(settings)
    assert PASSWORD not in repr(taken)
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_both_planes_get_what_is_made_for_a_start(settings: ServeSettings) -> None:
    documents: dict[str, Any] = {}
    with DataDirectory(settings.data_dir) as directory:
        log = LogSink(io.BytesIO())
        planes = Planes(instance_of(settings), directory, log)
        for child in (planes.control(), *planes.relays(Address("127.0.0.1", 1001), b"k" * 32)):
            for name, text in child.environment.items():
                if name.startswith("FAIRLEAD_"):
                    documents[name] = json.loads(text)
        log.close()
    control = ControlConfig.model_validate(documents["FAIRLEAD_CONTROL_CONFIG"])
    relay = documents["FAIRLEAD_RELAY_CONFIG"]
    assert control.link_token.get_secret_value() == relay["link_token"]
    assert str(control.control_socket) == relay["control_socket"]
    assert control.setup_token is not None
    assert control.setup_token.get_secret_value() == planes.setup_token
    assert relay["secret_key"] == KEY
    assert PASSWORD not in str(relay)
    assert documents["FAIRLEAD_LISTENER_CONFIG"]["host"] == "127.0.0.1"


def test_every_relay_worker_gets_the_store_and_control_does_not(tmp_path: Path) -> None:
    url = "redis://:store-canary@127.0.0.1:6379/0"
    settings = ServeSettings.load(data_dir=tmp_path / "data", workers=3, shared_url=url)
    assert "store-canary" not in repr(settings)
    with DataDirectory(settings.data_dir) as directory:
        log = LogSink(io.BytesIO())
        planes = Planes(instance_of(settings), directory, log)
        relays = planes.relays(Address("127.0.0.1", 1001), b"k" * 32)
        control = planes.control()
        log.close()
    assert [each.name for each in relays] == ["relay-1", "relay-2", "relay-3"]
    for each in relays:
        store = json.loads(each.environment["FAIRLEAD_RELAY_CONFIG"])["shared_store"]
        assert (store["url"], store["workers"], store["on_loss"]) == (url, 3, "fair-share")
    assert "store-canary" not in control.environment["FAIRLEAD_CONTROL_CONFIG"]
