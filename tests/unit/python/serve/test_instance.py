"""The settings of a start reach the supervisor whole, and by no way that others can read."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead.serve import instance as instance_module
from fairlead.serve.directory import DataDirectory
from fairlead.serve.instance import become_supervisor, take_instance
from fairlead.serve.log import LogSink
from fairlead.serve.planes import Planes
from fairlead.serve.port import Address
from fairlead.serve.start import instance_of
from fairlead.setting_names import variable_of
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
    descriptor = int(command[-1])
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
        for child in (planes.control(), planes.relay(Address("127.0.0.1", 1001), b"k" * 32)):
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
