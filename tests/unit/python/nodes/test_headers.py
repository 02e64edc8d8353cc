"""Custom headers: legal, not fairlead's own, masked when shown."""

from __future__ import annotations

import pytest

from fairlead.gateway.nodes.headers import check_headers, unmask


def test_names_are_kept_in_lower_case() -> None:
    assert check_headers({"X-Team": "blue", "Authorization": "Basic eA=="}) == {
        "x-team": "blue",
        "authorization": "Basic eA==",
    }


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Connection",
        "Transfer-Encoding",
        "content-length",
        "TE",
        "Upgrade",
        "Expect",
        "X-Fairlead-Link",
        "x-gateway-no-cache",
        "Proxy-Authorization",
        "Accept-Encoding",
        "",
        "a b",
        "a:b",
        "a\r\nb",
        "ä",
        "x" * 65,
    ],
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must"):
        check_headers({name: "value"})


@pytest.mark.parametrize(
    "value", ["", " ", "qz\r\nb: c", "qz\nb", "qz\x00", "qzä", " qz", "qz ", "qz" * 2049]
)
def test_values_that_are_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(ValueError, match="must give `x-a`") as refused:
        check_headers({"x-a": value})

    assert "qz" not in str(refused.value)


def test_a_name_in_two_cases_is_one_name() -> None:
    with pytest.raises(ValueError, match="once"):
        check_headers({"X-A": "1", "x-a": "2"})


def test_at_most_so_many() -> None:
    assert len(check_headers({f"x-{n}": "v" for n in range(32)})) == 32
    with pytest.raises(ValueError, match="at most"):
        check_headers({f"x-{n}": "v" for n in range(33)})


def test_a_masked_value_stays_as_it_was() -> None:
    assert unmask({"a": "***", "b": "new"}, {"a": "old"}) == {"a": "old", "b": "new"}
    with pytest.raises(KeyError):
        unmask({"c": "***"}, {"a": "old"})
