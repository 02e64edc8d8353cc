"""What tests do to an application that they share is gone after each of them."""

from __future__ import annotations

import pytest

from tests.support.management import Management
from tests.support.put_back import StateAtStart

pytestmark = pytest.mark.anyio


async def test_rows_settings_and_the_snapshot_are_as_at_the_start(
    own_management: Management,
) -> None:
    await own_management.ask("POST", "/api/keys", {"name": "first"}, expect=201)
    start = await StateAtStart.of(own_management.services)
    settings, snapshot = await own_management.ask("GET", "/api/settings"), own_management.snapshot()
    await own_management.ask("POST", "/api/keys", {"name": "second"}, expect=201)
    await own_management.ask("PATCH", "/api/settings", {"usageRetentionDays": 9})
    await own_management.ask("POST", "/api/groups", {"name": "a group"}, expect=201)

    await start.put_back()

    keys = (await own_management.ask("GET", "/api/keys"))["keys"]
    assert [key["name"] for key in keys] == ["first"]
    assert (await own_management.ask("GET", "/api/groups"))["groups"] == []
    after = await own_management.ask("GET", "/api/settings")
    assert after["usageRetentionDays"] == settings["usageRetentionDays"]
    again = own_management.snapshot()
    assert again["version"] > snapshot["version"]
    assert again["keys"] == snapshot["keys"]


@pytest.mark.one_control
@pytest.mark.parametrize("time", [1, 2])
async def test_a_shared_application_has_no_keys_of_the_test_before(
    management: Management, time: int
) -> None:
    assert (await management.ask("GET", "/api/keys"))["keys"] == [], time
    await management.ask("POST", "/api/keys", {"name": "mine"}, expect=201)


@pytest.mark.one_control
class TestExcepted:
    @pytest.mark.one_control(False)
    async def test_a_test_can_have_its_own(
        self, management: Management, own_management: Management
    ) -> None:
        assert management is own_management
