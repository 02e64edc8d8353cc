"""What is made of a provider's answer."""

from __future__ import annotations

from dataclasses import replace

import orjson

from fairlead.gateway.videos.table import Operation
from fairlead.gateway.videos.view import event_data, operation_view, replace_addresses

OPERATION = Operation(
    "a1", "key", "veo/3", "connection", "models/x/operations/y", None, None, 1, 2, None
)


def test_addresses_of_a_provider_become_ours() -> None:
    """What is no address of a video stays as it is."""
    samples = [
        {"video": {"uri": "https://provider.example/v1beta/files/abc:download", "mimeType": "m"}},
        {"video": {"encodedVideo": "AAAA"}},
        "nonsense",
    ]
    told = {"@type": "t", "generateVideoResponse": {"generatedSamples": samples, "other": 1}}
    shown, (file,) = replace_addresses(OPERATION, told, "http://gateway")
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
    assert event_data([file], "http://gateway") == {
        "output_file_uri": address,
        "file_name": f"files/{file.id}",
        "video_uri": address,
    }


def test_an_operation_has_an_error_or_a_response() -> None:
    assert operation_view(OPERATION, "https://gw.example") == {"name": "models/veo/3/operations/a1"}
    shown, files = replace_addresses(OPERATION, {"generateVideoResponse": None}, "http://gateway")
    assert files == []
    assert "generateVideoResponse" in shown


def test_an_operation_shows_its_videos_by_the_address_that_its_reader_uses() -> None:
    told = {
        "generateVideoResponse": {"generatedSamples": [{"video": {"uri": "https://p.example/x"}}]}
    }
    shown, [file] = replace_addresses(OPERATION, told, "http://127.0.0.1:20128")
    ended = replace(OPERATION, ended_at_ms=1, response=orjson.dumps(shown).decode())
    [sample] = operation_view(ended, "https://gw.example/base")["response"][
        "generateVideoResponse"
    ]["generatedSamples"]
    assert sample["video"]["uri"] == (
        f"https://gw.example/base/v1beta/files/{file.id}:download?alt=media"
    )
