"""Videos as OpenAI's official client asks for them, over providers in OpenAI's form and in Gemini's dialect."""

from __future__ import annotations

import base64
import io
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.sdk_clients import openai_client
from tests.support.sdks import openai
from tests.support.video_provider import FAILS, MADE, VideoProvider

# The client says of its own methods that OpenAI's models behind them have ended; others speak them on.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PICTURE = b"\x89PNG\r\n\x1a\npicture"
PER_SECOND_USD = 0.1


@pytest.fixture
def provider() -> Iterator[VideoProvider]:
    with VideoProvider() as running:
        yield running


@pytest.fixture
def reel(gateway: Gateway, provider: VideoProvider) -> str:
    """A model of that provider, with a price."""
    prefix = f"v{secrets.token_hex(4)}"
    node = gateway.add_node(prefix, provider.url)
    prices = {"reel": {"perSecond": PER_SECOND_USD}}
    gateway.add_connection(node["id"], "video-canary-key", providerSpecificData={"prices": prices})
    return f"{prefix}/reel"


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    key = gateway.create_key()["key"]
    with openai_client(gateway, key) as made:
        yield made


def ended(client: openai.OpenAI, video_id: str) -> Any:
    def read() -> Any:
        video = client.videos.retrieve(video_id)
        return video if video.status in ("completed", "failed") else None

    return eventually(read, "the video", within_s=60, every_s=0.2)


def test_a_video_is_made_read_listed_and_deleted(
    gateway: Gateway, client: openai.OpenAI, provider: VideoProvider, reel: str
) -> None:
    begun = client.videos.create(model=reel, prompt="a boat", seconds="8", size="1280x720")
    assert (begun.object, begun.status, begun.model) == ("video", "queued", reel)
    assert (begun.seconds, begun.size, begun.prompt) == ("8", "1280x720", "a boat")
    (form,) = provider.forms
    assert form == {"model": "reel", "prompt": "a boat", "seconds": "8", "size": "1280x720"}
    assert provider.credentials == {"Bearer video-canary-key"}
    done = ended(client, begun.id)
    assert (done.status, done.progress, done.error) == ("completed", 100, None)
    assert done.completed_at >= done.created_at
    (at_provider,) = provider.videos
    assert begun.id != at_provider
    content = client.videos.download_content(begun.id)
    assert content.read() == MADE + f"{at_provider} video".encode()
    thumbnail = client.videos.download_content(begun.id, variant="thumbnail")
    assert thumbnail.read().endswith(b"thumbnail")
    assert thumbnail.response.headers["content-type"] == "image/webp"
    other = ended(client, client.videos.create(model=reel, prompt=FAILS).id)
    assert (other.status, other.error.message) == ("failed", "Too plain.")
    listed = [each.id for each in client.videos.list(limit=1)]
    assert listed == [other.id, begun.id]
    assert [each.id for each in client.videos.list(order="asc")] == [begun.id, other.id]
    gone = client.videos.delete(begun.id)
    assert (gone.id, gone.object, gone.deleted) == (begun.id, "video.deleted", True)
    assert at_provider not in provider.videos
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(begun.id)
    # Nothing of a stranger's is there.
    with openai_client(gateway, gateway.create_key()["key"]) as stranger:
        assert list(stranger.videos.list()) == []
        for ask in (
            stranger.videos.retrieve,
            stranger.videos.delete,
            stranger.videos.download_content,
        ):
            with pytest.raises(openai.NotFoundError):
                ask(other.id)
        with pytest.raises(openai.NotFoundError):
            stranger.videos.remix(other.id, prompt="at night")


def test_a_picture_goes_along(
    client: openai.OpenAI, provider: VideoProvider, reel: str, gateway: Gateway
) -> None:
    """As a file of the form, as an address, and as a data URL in JSON."""
    file = ("a.png", io.BytesIO(PICTURE), "image/png")
    client.videos.create(model=reel, prompt="a", input_reference=file)
    # The client takes files alone: the address is a field of the form that is sent without it.
    fields = {
        "model": reel,
        "prompt": "b",
        "input_reference[image_url]": "https://pictures.example/a.png",
    }
    form = [(name, (None, text)) for name, text in fields.items()]
    expect(gateway.caller.post("/v1/videos", files=form), 200)
    data = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    body = {
        "model": reel,
        "prompt": "c",
        "seconds": 6,
        "input_reference": {"image_url": data},
        "seed": 7,
    }
    expect(gateway.caller.post("/v1/videos/generations", json=body), 200)
    first, second, third = provider.forms
    assert first["input_reference"] == ("image/png", PICTURE)
    assert first["seconds"] == "4"
    assert second["input_reference[image_url]"] == "https://pictures.example/a.png"
    assert (third["input_reference"], third["seconds"], third["seed"]) == (
        ("image/png", PICTURE),
        "6",
        "7",
    )


def test_nothing_is_made_that_is_not_reserved(
    gateway: Gateway, provider: VideoProvider, reel: str
) -> None:
    """The relay counts `seconds`: what would say the amount by another name goes to no provider."""
    for name, value in (("n", 4), ("Duration", "60"), ("seconds[0]", "60"), ("model[a]", "b")):
        ask = {"model": reel, "prompt": "a", name: value}
        refused = expect(gateway.caller.post("/v1/videos", json=ask), 400)
        assert refused["error"]["param"] == name
    assert provider.forms == []


def test_a_remix_is_paid_for_as_its_source(
    gateway: Gateway, client: openai.OpenAI, provider: VideoProvider, reel: str
) -> None:
    provider.proceed.clear()
    begun = client.videos.create(model=reel, prompt="a boat", seconds="12")
    with pytest.raises(openai.ConflictError):
        client.videos.remix(begun.id, prompt="at night")
    with pytest.raises(openai.ConflictError):
        client.videos.delete(begun.id)
    provider.proceed.set()
    ended(client, begun.id)
    remixed = client.videos.remix(begun.id, prompt="at night")
    assert (remixed.remixed_from_video_id, remixed.seconds) == (begun.id, "12")
    assert provider.forms[-1]["prompt"] == "at night"
    assert ended(client, remixed.id).status == "completed"

    def costs() -> list[int]:
        found = gateway.records(model=reel)
        return [one["costUsdMicros"] for one in found if one["outcome"] == "completed"]

    price = round(12 * PER_SECOND_USD * 1e6)
    assert eventually(lambda: len(costs()) == 2 and costs(), "records", within_s=15) == [
        price,
        price,
    ]
    # Said otherwise than it was made, it would be paid for otherwise.
    for wrong in ({"seconds": "1"}, {"model": f"{reel}-small"}):
        ask = {"model": reel, "seconds": "12", "prompt": "x", "remixed_from_video_id": begun.id}
        answer = client._client.post(
            f"{gateway.url}/v1/videos",
            json={**ask, **wrong},
            headers={"authorization": f"Bearer {client.api_key}"},
        )
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == next(iter(wrong))


@pytest.mark.one_node(
    reason="what a refused request had leased of the budget's rest is another worker's a second later"
)
def test_a_budget_is_reserved(gateway: Gateway, provider: VideoProvider, reel: str) -> None:
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=8 * PER_SECOND_USD)["key"]
    with openai_client(gateway, key) as client:
        with pytest.raises(openai.RateLimitError):
            client.videos.create(model=reel, prompt="a", seconds="12")
        client.videos.create(model=reel, prompt="a", seconds="8")
        with pytest.raises(openai.RateLimitError):
            client.videos.create(model=reel, prompt="a", seconds="4")
    assert len(provider.forms) == 1
    for rule in ({"allowedEndpoints": ["chat"]}, {"blockedModels": [reel]}):
        barred = gateway.create_key(**rule)["key"]
        with openai_client(gateway, barred) as client, pytest.raises(openai.PermissionDeniedError):
            client.videos.create(model=reel, prompt="a")
    provider.refuse_with = 400
    size: Any = "99x99"
    with openai_client(gateway) as client:
        with pytest.raises(openai.BadRequestError, match="No such size"):
            client.videos.create(model=reel, prompt="a", size=size)
        assert all(each.model != reel for each in client.videos.list())


def test_geminis_dialect_makes_them_too(
    loopback_gateway: Gateway, loopback_standin: dict[str, str]
) -> None:
    model = f"{loopback_standin['gemini']}/standin"
    with openai_client(loopback_gateway, loopback_gateway.create_key()["key"]) as client:
        begun = client.videos.create(model=model, prompt="a cat", seconds="8", size="720x1280")
        assert ended(client, begun.id).status == "completed"
        assert b"ftypmp42" in client.videos.download_content(begun.id).read()
        with pytest.raises(openai.BadRequestError, match="variant"):
            client.videos.download_content(begun.id, variant="thumbnail")
        with pytest.raises(openai.BadRequestError, match="changes none"):
            client.videos.remix(begun.id, prompt="at night")
        with pytest.raises(openai.BadRequestError, match="size must be one of"):
            client.videos.create(model=model, prompt="a cat", size="1024x1792")
        failed = ended(client, client.videos.create(model=model, prompt="please fail").id)
        assert failed.error.message == "The stand-in was asked to fail."
        withheld = ended(client, client.videos.create(model=model, prompt="a filtered cat").id)
        assert (withheld.status, withheld.error.code) == ("failed", "moderation_blocked")
        assert withheld.error.message == "A reason."
        with pytest.raises(openai.NotFoundError, match="has failed"):
            client.videos.download_content(withheld.id)
        client.videos.delete(begun.id)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "model"),
        ({"model": 7, "prompt": "a"}, "model"),
        ({"prompt": "a"}, "model"),
        ({"model": "MODEL"}, "prompt"),
        ({"model": "MODEL", "prompt": ""}, "prompt"),
        ({"model": "MODEL", "prompt": "a", "seconds": "long"}, "seconds"),
        ({"model": "MODEL", "prompt": "a", "seconds": 0}, "seconds"),
        ({"model": "MODEL", "prompt": "a", "seconds": 3601}, "seconds"),
        ({"model": "MODEL", "prompt": "a", "size": "wide"}, "size"),
        ({"model": "MODEL", "prompt": "a", "input_reference": "x"}, "input_reference"),
        (
            {"model": "MODEL", "prompt": "a", "input_reference": {"file_id": "file-1"}},
            "input_reference.file_id",
        ),
        (
            {
                "model": "MODEL",
                "prompt": "a",
                "input_reference": {"image_url": "file:///etc/passwd"},
            },
            "input_reference.image_url",
        ),
        (
            {
                "model": "MODEL",
                "prompt": "a",
                "input_reference": {"image_url": "data:text/html;base64,eA=="},
            },
            "input_reference.image_url",
        ),
        ({"model": "MODEL", "prompt": "a", "further": {"x": 1}}, "further"),
        ({"model": "MODEL", "prompt": "a", "remixed_from_video_id": "video_none"}, "video_id"),
    ],
)
def test_a_wrong_body_begins_nothing(
    gateway: Gateway, provider: VideoProvider, reel: str, body: dict[str, Any], param: str
) -> None:
    sent = {name: reel if value == "MODEL" else value for name, value in body.items()}
    answer = gateway.caller.post("/v1/videos", json=sent)
    assert answer.status_code in (400, 403, 404), answer.text
    assert answer.json()["error"]["param"] == param, answer.text
    assert provider.forms == []


def test_a_wrong_form_begins_nothing(gateway: Gateway, provider: VideoProvider, reel: str) -> None:
    fields: dict[str, Any] = {"model": (None, reel), "prompt": (None, "a")}
    page = ("a.html", b"<html>", "text/html")
    for files in (
        {**fields, "input_reference": page},
        {**fields, "video": ("a.png", PICTURE, "image/png")},
        {**fields, "input_reference[a][b]": (None, "x")},
    ):
        answer = gateway.caller.post("/v1/videos", files=files)
        assert answer.status_code == 400, answer.text
    twice = [("model", (None, reel)), ("model", (None, "another/model")), ("prompt", (None, "a"))]
    assert gateway.caller.post("/v1/videos", files=twice).status_code == 400
    broken = {"content-type": "multipart/form-data; boundary=b"}
    assert gateway.caller.post("/v1/videos", content=b"--b\r\n", headers=broken).status_code == 400
    text = {"content-type": "text/plain"}
    assert gateway.caller.post("/v1/videos", content=b"{}", headers=text).status_code == 415
    assert provider.forms == []


def test_no_key_no_video(gateway: Gateway, reel: str) -> None:
    for method, path in (
        ("POST", "/v1/videos"),
        ("GET", "/v1/videos"),
        ("GET", "/v1/videos/video_x"),
        ("GET", "/v1/videos/video_x/content"),
        ("DELETE", "/v1/videos/video_x"),
        ("POST", "/v1/videos/video_x/remix"),
    ):
        answer = httpx.request(
            method,
            gateway.url + path,
            json={"model": reel, "prompt": "a"} if method == "POST" else None,
        )
        assert answer.status_code == 401, (method, path)
    for path, status in (
        ("?limit=0", 400),
        ("?limit=101", 400),
        ("?order=up", 400),
        ("?after=none", 404),
    ):
        assert gateway.caller.get(f"/v1/videos{path}").status_code == status, path
    assert gateway.caller.get("/v1/videos/video_x/content?variant=sound").status_code == 400
    for body in ({}, {"prompt": 7}, {"prompt": "a", "model": "x"}):
        assert gateway.caller.post("/v1/videos/video_x/remix", json=body).status_code == 400, body
