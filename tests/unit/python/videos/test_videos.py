"""Names that patterns of keys speak of, what a video costs, and what is made of a provider's answer."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import _core
from fairlead.gateway.videos.fields import VideoAsk
from fairlead.gateway.videos.table import Operation
from fairlead.gateway.videos.view import operation_view, take_in, told_of


@given(
    st.text("ab*", min_size=1, max_size=12).filter(lambda text: text != ""),
    st.text("ab", max_size=12),
)
def test_patterns_are_as_in_shells(pattern: str, name: str) -> None:
    assert _core.model_is_named(pattern, name, any_case=False) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("parameters", "seconds"),
    [
        (None, 8),
        ({"durationSeconds": 5}, 5),
        ({"durationSeconds": "6", "sampleCount": 2}, 12),
        ({"numberOfVideos": 3}, 24),
        ({"durationSeconds": "long", "sampleCount": True}, 8),
        ({"durationSeconds": 10**9, "sampleCount": 10**9}, 3600 * 16),
        ({"durationSeconds": -1}, 8),
    ],
)
def test_the_seconds_that_are_paid(parameters: dict[str, object] | None, seconds: int) -> None:
    ask = VideoAsk.model_validate({"instances": [{"prompt": "x"}], "parameters": parameters})
    assert ask.seconds() == seconds


OPERATION = Operation("a1", "key", "veo/3", "connection", "models/x/operations/y", None, None, 1, 2, None)  # fmt: skip


def test_addresses_of_a_provider_become_ours() -> None:
    """What is no address of a video stays as it is."""
    samples = [
        {"video": {"uri": "https://provider.example/v1beta/files/abc:download", "mimeType": "m"}},
        {"video": {"encodedVideo": "AAAA"}},
        "nonsense",
    ]
    told = {"@type": "t", "generateVideoResponse": {"generatedSamples": samples, "other": 1}}
    shown, (file,) = take_in(OPERATION, told, "http://gateway")
    made = shown["generateVideoResponse"]
    address = f"http://gateway/v1beta/files/{file.id}:download?alt=media"
    assert made == {
        "generatedSamples": [{"video": {"uri": address, "mimeType": "m"}}, *samples[1:]],
        "other": 1,
    }
    assert file.uri == "https://provider.example/v1beta/files/abc:download"
    # Google's client takes small letters and digits for a name.
    assert file.id.isalnum()
    assert file.id == file.id.lower()
    assert told_of([file], "http://gateway") == {
        "output_file_uri": address, "file_name": f"files/{file.id}", "video_uri": address,
    }  # fmt: skip


def test_an_operation_has_an_error_or_a_response() -> None:
    assert operation_view(OPERATION) == {"name": "models/veo/3/operations/a1"}
    shown, files = take_in(OPERATION, {"generateVideoResponse": None}, "http://gateway")
    assert files == []
    assert "generateVideoResponse" in shown
