"""The official `openai` client with files and batches, on real processes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.sdk_clients import openai_client
from tests.support.sdks import openai
from tests.support.standin import start_standin

ENDED = ("completed", "failed", "cancelled", "expired")


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    """With a key of its own, so that lists hold what the test put there."""
    with openai_client(gateway, gateway.create_key(name="files")["key"]) as made:
        yield made


@pytest.fixture
def stranger(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway, gateway.create_key(name="stranger")["key"]) as made:
        yield made


def lines(*bodies: dict[str, Any], url: str = "/v1/chat/completions") -> bytes:
    """An input file with these requests."""
    return b"".join(
        json.dumps({"custom_id": f"r{at}", "method": "POST", "url": url, "body": body}).encode()
        + b"\n"
        for at, body in enumerate(bodies)
    )


def chat(model: str, text: str = "hello") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}]}


def uploaded(client: openai.OpenAI, content: bytes, name: str = "in.jsonl") -> str:
    return client.files.create(file=(name, content), purpose="batch").id


def started(client: openai.OpenAI, content: bytes, **more: Any) -> str:
    options: dict[str, Any] = {"endpoint": "/v1/chat/completions", **more}
    return client.batches.create(
        input_file_id=uploaded(client, content), completion_window="24h", **options
    ).id


def ended(client: openai.OpenAI, batch_id: str, *, within_s: float = 20.0) -> Any:
    def look() -> Any:
        batch = client.batches.retrieve(batch_id)
        counts = batch.request_counts
        assert counts is not None
        assert counts.completed + counts.failed <= counts.total
        return batch if batch.status in ENDED else None

    return eventually(look, f"{batch_id} ends", within_s=within_s, every_s=0.1)


def rows(client: openai.OpenAI, file_id: str) -> dict[str, Any]:
    """The results in a file, by their ids, each once."""
    found = [json.loads(line) for line in client.files.content(file_id).content.splitlines()]
    by_id = {row["custom_id"]: row for row in found}
    assert len(by_id) == len(found)
    return by_id


# ------------------------------------------------------------------------------------------ files


def test_a_file_comes_back_as_it_went(client: openai.OpenAI, gateway: Gateway) -> None:
    content = bytes(range(256)) * 5000
    made = client.files.create(file=("naïve name.bin", io.BytesIO(content)), purpose="user_data")
    assert (made.bytes, made.filename, made.purpose) == (
        len(content),
        "naïve name.bin",
        "user_data",
    )
    assert client.files.retrieve(made.id) == made
    answer = client.files.content(made.id)
    assert answer.content == content
    assert answer.response.headers["content-type"] == "application/octet-stream"
    assert answer.response.headers["x-content-type-options"] == "nosniff"
    assert answer.response.headers["content-disposition"].startswith("attachment; ")
    assert (gateway.data_dir / "files" / made.id).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-9", 206, slice(0, 10)),
        ("bytes=990-", 206, slice(990, None)),
        ("bytes=-10", 206, slice(-10, None)),
        ("bytes=5000-", 416, None),
    ],
)
def test_a_part_of_a_content(
    client: openai.OpenAI, gateway: Gateway, asked: str, status: int, part: slice | None
) -> None:
    content = bytes(range(250)) * 4
    made = client.files.create(file=("a", content), purpose="user_data")
    headers = {"range": asked, "authorization": f"Bearer {client.api_key}"}
    with gateway.client(headers=headers) as caller:
        answer = caller.get(f"/v1/files/{made.id}/content")
    assert answer.status_code == status
    if part is not None:
        assert answer.content == content[part]


def test_files_are_listed_page_by_page(client: openai.OpenAI) -> None:
    ids = [client.files.create(file=(f"{n}", b"x"), purpose="user_data").id for n in range(5)]
    other = client.files.create(file=("v", b"x"), purpose="vision").id
    assert [file.id for file in client.files.list()] == [other, *ids[::-1]]
    assert [file.id for file in client.files.list(order="asc", limit=2)] == [*ids, other]
    assert [file.id for file in client.files.list(purpose="vision")] == [other]
    assert client.files.list(limit=2).has_more


def test_a_deleted_file_is_gone(client: openai.OpenAI, gateway: Gateway) -> None:
    made = client.files.create(file=("a", b"x"), purpose="user_data")
    assert client.files.delete(made.id).deleted
    assert not (gateway.data_dir / "files" / made.id).exists()
    for call in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            call(made.id)


def test_a_file_may_go_by_itself(client: openai.OpenAI) -> None:
    made = client.files.create(
        file=("a", b"x"),
        purpose="user_data",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert made.expires_at == made.created_at + 3600
    batch = client.files.create(file=("a", b"x"), purpose="batch")
    assert batch.expires_at == batch.created_at + 30 * 86_400


def test_another_key_sees_what_is_not_there(
    client: openai.OpenAI, stranger: openai.OpenAI, gateway: Gateway
) -> None:
    """A stranger's file, and a file that never was, are one and the same."""
    made = client.files.create(file=("a", b"x"), purpose="batch").id
    missing = f"file-{'0' * 24}"
    for call in (stranger.files.retrieve, stranger.files.content, stranger.files.delete):
        messages = []
        for file_id in (made, missing):
            with pytest.raises(openai.NotFoundError) as raised:
                call(file_id)
            messages.append(str(raised.value).replace(file_id, "ID"))
        assert messages[0].split("requestId")[0] == messages[1].split("requestId")[0]
    assert not list(stranger.files.list())
    with pytest.raises(openai.BadRequestError, match="No such file"):
        stranger.batches.create(
            input_file_id=made, endpoint="/v1/chat/completions", completion_window="24h"
        )
    with gateway.client() as nobody:
        assert nobody.get("/v1/files").status_code == 401


@pytest.mark.parametrize(
    ("data", "files", "param"),
    [
        ({"purpose": "other"}, {"file": ("a", b"x")}, "purpose"),
        ({}, {"file": ("a", b"x")}, "purpose"),
        ({"purpose": "batch"}, {"other": ("a", b"x")}, "file"),
        ({"purpose": "batch", "more": "1"}, {"file": ("a", b"x")}, "more"),
        ({"purpose": "batch"}, {"file": ("", b"x")}, "file"),
        (
            {"purpose": "batch", "expires_after[anchor]": "created_at"},
            {"file": ("a", b"x")},
            "expires_after[seconds]",
        ),
    ],
)
def test_a_bad_upload_names_its_field(
    gateway: Gateway, data: dict[str, str], files: Any, param: str
) -> None:
    answer = gateway.caller.post("/v1/files", data=data, files=files)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize("file_id", ["..", "%2e%2e", "a" * 300, "file-0%00", "..%2fsecret.key"])
def test_an_id_is_no_path(gateway: Gateway, file_id: str) -> None:
    for tail in ("", "/content"):
        answer = gateway.caller.get(f"/v1/files/{file_id}{tail}")
        assert answer.status_code == 404, answer.text


# ---------------------------------------------------------------------------------------- batches


def test_a_batch_from_file_to_file(client: openai.OpenAI, gateway: Gateway, model: str) -> None:
    """Every line is run as the owner's key; what succeeds and what fails is told apart."""
    content = lines(
        chat(model, "one"), chat(f"{model}@status=400"), chat(f"{model}@tokens_in=7,tokens_out=3")
    )
    batch_id = started(client, content, metadata={"job": "nightly"})
    batch = ended(client, batch_id)
    assert batch.status == "completed"
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (3, 2, 1)
    assert batch.metadata == {"job": "nightly"}
    assert batch.completed_at >= batch.finalizing_at >= batch.in_progress_at >= batch.created_at
    assert batch.expires_at == batch.created_at + 86_400

    output, errors = rows(client, batch.output_file_id), rows(client, batch.error_file_id)
    assert output.keys() == {"r0", "r2"}
    assert "one" in output["r0"]["response"]["body"]["choices"][0]["message"]["content"]
    assert errors["r1"]["response"]["status_code"] == 400
    told = [row["response"]["body"]["usage"] for row in output.values()]
    assert batch.usage.input_tokens == sum(usage["prompt_tokens"] for usage in told)
    assert batch.usage.output_tokens == sum(usage["completion_tokens"] for usage in told)

    record = gateway.record(output["r0"]["response"]["request_id"])
    assert (record["sessionTag"], record["principalKind"]) == (batch_id, "key")
    kept = client.files.retrieve(batch.output_file_id)
    assert (kept.purpose, kept.filename) == ("batch_output", f"{batch_id}_output.jsonl")
    assert [one.id for one in client.batches.list()] == [batch_id]


def test_a_batch_of_embeddings(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "input": "x", "dimensions": 4, "encoding_format": "float"}
    batch_id = started(client, lines(body, url="/v1/embeddings"), endpoint="/v1/embeddings")
    batch = ended(client, batch_id)
    answer = rows(client, batch.output_file_id)["r0"]["response"]["body"]
    assert len(answer["data"][0]["embedding"]) == 4
    assert batch.model == model
    assert batch.error_file_id is None


BAD_INPUTS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"\n\n", "empty_file"),
    "no JSON": (b"{\n", "invalid_json_line"),
    "no id": (b'{"method": "POST"}\n', "missing_required_parameter"),
    "another url": (lines({}, url="/v1/embeddings"), "mismatched_endpoint"),
    "an id twice": (lines({}) * 2, "duplicate_custom_id"),
    "a stream": (lines({"stream": True}), "invalid_body"),
}


@pytest.mark.parametrize(("content", "code"), BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
def test_a_bad_input_fails_the_batch(client: openai.OpenAI, content: bytes, code: str) -> None:
    """Nothing is run; the first faults are named with their lines."""
    batch = ended(client, started(client, content))
    assert batch.status == "failed"
    assert batch.errors.data[0].code == code
    assert batch.output_file_id is None


def test_what_a_batch_may_not_be(client: openai.OpenAI) -> None:
    wrong = client.files.create(file=("a", b"x"), purpose="user_data").id
    good = uploaded(client, b"{}\n")
    asked: Any = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    for changes, param in (
        ({"input_file_id": wrong}, "input_file_id"),
        ({"endpoint": "/api/keys"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
    ):
        with pytest.raises(openai.BadRequestError) as raised:
            client.batches.create(**{"input_file_id": good, **asked, **changes})
        assert raised.value.param == param


def test_a_batch_is_cancelled(client: openai.OpenAI, stranger: openai.OpenAI, model: str) -> None:
    """What was done is kept, what is under way is waited for, and the counts add up."""
    slow = [chat(f"{model}@latency_ms=150", str(n)) for n in range(200)]
    batch_id = started(client, lines(*slow))
    eventually(
        lambda: client.batches.retrieve(batch_id).request_counts.completed,  # type: ignore[union-attr]
        "a first result",
        within_s=15,
        every_s=0.1,
    )
    with pytest.raises(openai.NotFoundError):
        stranger.batches.cancel(batch_id)
    with pytest.raises(openai.ConflictError):
        client.files.delete(client.batches.retrieve(batch_id).input_file_id)
    assert client.batches.cancel(batch_id).status in ("cancelling", "cancelled")
    batch = ended(client, batch_id)
    assert batch.status == "cancelled"
    counts = batch.request_counts
    assert counts.total == 200
    assert 0 < counts.completed < 200
    assert len(rows(client, batch.output_file_id)) == counts.completed
    with pytest.raises(openai.BadRequestError):
        client.batches.cancel(batch_id)


def run_through_kill(gateways: Callable[..., Gateway], count: int, kills: int) -> None:
    """A batch whose control plane is killed in the middle: each line has one result at the end."""
    with start_standin() as url:
        gateway = gateways()
        node = gateway.add_node("killed", f"{url}/v1")
        gateway.add_connection(node["id"], "sk-standin-canary")
        with openai_client(gateway, gateway.key) as client:
            bodies = [chat("killed/standin@latency_ms=100", f"line {n}") for n in range(count)]
            batch_id = started(client, lines(*bodies))
            part = gateway.data_dir / "batches" / f"{batch_id}.output"
            for number in range(1, kills + 1):
                enough = count * number // (kills + 1)
                eventually(
                    lambda enough=enough: (
                        part.exists() and part.read_bytes().count(b"\n") >= enough
                    ),
                    f"{enough} results",
                    within_s=60,
                )
                gateway.control.kill()
                eventually(gateway.manages, "control is back", within_s=90, every_s=0.1)
            batch = ended(client, batch_id, within_s=90)
            assert batch.status == "completed"
            assert batch.request_counts.completed == batch.request_counts.total == count
            output = rows(client, batch.output_file_id)
            assert output.keys() == {f"r{n}" for n in range(count)}
            for n in range(count):
                said = output[f"r{n}"]["response"]["body"]["choices"][0]["message"]["content"]
                assert said.endswith(f"line {n}")
            tokens = sum(
                row["response"]["body"]["usage"]["prompt_tokens"] for row in output.values()
            )
            assert batch.usage.input_tokens == tokens


def test_a_killed_control_goes_on_where_it_was(gateways: Callable[..., Gateway]) -> None:
    run_through_kill(gateways, 60, 1)


@pytest.mark.slow
def test_a_control_that_is_killed_again_and_again(gateways: Callable[..., Gateway]) -> None:
    run_through_kill(gateways, 400, 4)


def test_completed_batches_are_deleted_at_once(
    client: openai.OpenAI, stranger: openai.OpenAI, model: str
) -> None:
    """The caller's own that are completed; their files stay, and so does everybody else's."""
    done = started(client, lines(chat(model)))
    failed = started(client, b"no line\n")
    others = started(stranger, lines(chat(model)))
    output = ended(client, done).output_file_id
    ended(client, failed)
    ended(stranger, others)
    told: Any = client.post("/batches/delete-completed", cast_to=object)
    assert told == {
        "object": "list",
        "data": [{"id": done, "object": "batch", "deleted": True}],
        "has_more": False,
    }
    assert [batch.id for batch in client.batches.list().data] == [failed]
    assert client.files.content(output).content
    assert [batch.id for batch in stranger.batches.list().data] == [others]
    with pytest.raises(openai.BadRequestError, match="all"):
        client.post("/batches/delete-completed", body={"all": True}, cast_to=object)
