"""Batches and files: many requests at a separate price, with their input and output files.

Both belong to keys, so a key is chosen first (`acting_key.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from fairlead.dashboard import figures
from fairlead.dashboard.acting_key import KEY, KeyApi, KeyChoice, choose_key, required_key
from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit

PLACE: Final = "/batches"
SHOWN: Final = 20
FILES_SHOWN: Final = 50
MOODS: Final = {
    "completed": "good",
    "failed": "bad",
    "expired": "bad",
    "cancelled": "",
    "cancelling": "warn",
}
ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
ENDPOINTS: Final = (
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
    "/v1/images/generations",
)
PURPOSES: Final = (
    ("batch", "batch: lines of requests"),
    ("user_data", "user_data: for models to read"),
    ("assistants", "assistants"),
    ("vision", "vision"),
    ("fine-tune", "fine-tune"),
    ("evals", "evals"),
)
LINE: Final = (
    '{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": '
    '{"model": "auto", "messages": [{"role": "user", "content": "Hello"}]}}'
)
FILE: Final = (
    Field("name", "File name", most=200, is_required=True, example="requests.jsonl"),
    Field("purpose", "Purpose", "choice", options=PURPOSES),
    Field(
        "content",
        "Content",
        "prose",
        "For a batch: one request per line, as JSON. Up to half a megabyte; send larger files to POST /v1/files.",
        is_required=True,
        example=LINE,
    ),
)
MOMENTS: Final = (
    ("created_at", "Made"),
    ("in_progress_at", "Begun"),
    ("finalizing_at", "Lines done"),
    ("completed_at", "Completed"),
    ("failed_at", "Failed"),
    ("cancelling_at", "Cancelling"),
    ("cancelled_at", "Cancelled"),
    ("expired_at", "Expired"),
    ("expires_at", "Expires"),
)


async def show(visit: Visit) -> View:
    """The batches and files of a key, newest first."""
    choice = await choose_key(visit, "batches")
    batches: dict[str, Any] = {"data": [], "has_more": False}
    files: dict[str, Any] = {"data": [], "has_more": False}
    if choice.api is not None:
        batches, files = await asyncio.gather(
            choice.api.get("/v1/batches", limit=SHOWN, after=visit.query.get("after")),
            choice.api.get("/v1/files", limit=FILES_SHOWN, after=visit.query.get("filesAfter")),
        )
    fields = {
        **_chosen(choice),
        "batches": batches["data"],
        "next": _next(choice, "after", batches),
        "files": files["data"],
        "files_next": _next(choice, "filesAfter", files),
        "is_first": not (visit.query.get("after") or visit.query.get("filesAfter")),
        "moods": MOODS,
        "is_active": any(each["status"] not in ENDED for each in batches["data"]),
    }
    return View("batches.html", fields, ("batches",) if fields["is_first"] else ())


async def show_new_file(visit: Visit) -> View:
    """The form of a file."""
    choice = await choose_key(visit, "files", _typed(visit))
    values = {"purpose": "batch"}
    group = Group("File", FILE, is_open=True)
    form = make_form("upload", (group,), values, visit.failure, **_hidden(choice))
    return View("batch_file.html", {**_chosen(choice), "fields": form, "title": "New file"})


async def upload(visit: Visit, typed: FormFields) -> str:
    """Stores the file."""
    api = await required_key(visit, "files", typed)
    values = read_values(FILE, typed)
    content = values["content"]
    if not content.strip():
        raise Refused(400, "Content is required: paste it, or choose a file.", "content")
    if values["purpose"] == "batch" and not content.endswith("\n"):
        content += "\n"
    made = await api.upload(values["name"], values["purpose"], content.encode())
    if values["purpose"] != "batch":
        return f"{PLACE}?{KEY}={quote(api.key_id)}"
    return f"{PLACE}/new?{KEY}={quote(api.key_id)}&file={quote(made['id'])}"


async def show_new(visit: Visit) -> View:
    """The form of a batch."""
    choice = await choose_key(visit, "batches", _typed(visit))
    groups = (await _new_group(choice.api),) if choice.api else ()
    values = {
        "input_file_id": visit.query.get("file"),
        "endpoint": visit.query.get("endpoint", ENDPOINTS[0]),
    }
    form = make_form("create", groups, values, visit.failure, **_hidden(choice))
    return View("batch_new.html", {**_chosen(choice), "fields": form, "title": "New batch"})


async def create(visit: Visit, typed: FormFields) -> str:
    """Starts the batch."""
    api = await required_key(visit, "batches", typed)
    values = read_values((await _new_group(api)).fields, typed)
    body = {**values, "completion_window": "24h"}
    made = await api.send("POST", "/v1/batches", body)
    return f"{PLACE}/{made['id']}?{KEY}={quote(api.key_id)}"


async def show_batch(visit: Visit) -> View:
    """How far a batch is, and what it left."""
    choice = await choose_key(visit, "batches", _typed(visit))
    api = await required_key(visit, "batches", _typed(visit))
    batch = await api.get(f"/v1/batches/{visit.params['batch_id']}")
    counts = batch.get("request_counts") or {"total": 0, "completed": 0, "failed": 0}
    done = counts["completed"] + counts["failed"]
    fields = {
        **_chosen(choice),
        "batch": batch,
        "counts": counts,
        "part": done / counts["total"] if counts["total"] else 0.0,
        "moments": [
            (words, figures.seconds(batch[name])) for name, words in MOMENTS if batch.get(name)
        ],
        "errors": ((batch.get("errors") or {}).get("data") or [])[:100],
        "moods": MOODS,
        "is_ended": batch["status"] in ENDED,
        "title": f"Batch {batch['id']}",
    }
    return View("batch.html", fields, ("state",))


async def confirm_cancel(visit: Visit, typed: FormFields) -> Question:
    """Names what cancelling does."""
    batch_id = visit.params["batch_id"]
    goes = [
        "Lines that have not started will not run; those in progress have half a minute.",
        "Finished answers are in the output file, and were charged.",
    ]
    page_url = f"/dashboard{PLACE}/{batch_id}?{KEY}={quote(typed.get(KEY, ''))}"
    return Question("Cancel this batch?", goes, "Cancel it", page_url)


async def cancel(visit: Visit, typed: FormFields) -> str:
    """Stops the batch."""
    api = await required_key(visit, "batches", typed)
    await api.send("POST", f"/v1/batches/{visit.params['batch_id']}/cancel")
    return f"{PLACE}/{visit.params['batch_id']}?{KEY}={quote(api.key_id)}"


async def show_content(visit: Visit) -> Response:
    """A file's content, as a download."""
    api = await required_key(visit, "files")
    file = await api.get(f"/v1/files/{visit.params['file_id']}")
    return api.answer_of(f"/v1/files/{file['id']}/content")


async def confirm_delete(visit: Visit, typed: FormFields) -> Question:
    """Names the file that goes."""
    api = await required_key(visit, "files", typed)
    file = await api.get(f"/v1/files/{typed.get('file') or 'none'}")
    goes = [f"The file {file['filename']} ({figures.size(file['bytes'])}), for good."]
    page_url = f"/dashboard{PLACE}?{KEY}={quote(api.key_id)}"
    return Question(f"Delete the file {file['filename']}?", goes, "Delete it", page_url)


async def delete(visit: Visit, typed: FormFields) -> str:
    """Deletes a file."""
    api = await required_key(visit, "files", typed)
    await api.send("DELETE", f"/v1/files/{typed.get('file') or 'none'}")
    return f"{PLACE}?{KEY}={quote(api.key_id)}"


async def _new_group(api: KeyApi) -> Group:
    files = await api.get("/v1/files", purpose="batch", limit=FILES_SHOWN)
    options = tuple(
        (each["id"], f"{each['filename']} ({figures.size(each['bytes'])})")
        for each in files["data"]
    )
    return Group(
        "Batch",
        (
            Field(
                "input_file_id",
                "File",
                "choice",
                "Files of the purpose batch.",
                options=options,
                is_required=True,
            ),
            Field(
                "endpoint",
                "Endpoint of its lines",
                "choice",
                options=tuple((each, each) for each in ENDPOINTS),
            ),
            Field("metadata", "Metadata", "pairs", "One name = value in a line."),
        ),
        is_open=True,
    )


def _typed(visit: Visit) -> FormFields | None:
    """The fields of a refused form, so that its key stays chosen."""
    return visit.failure.typed if visit.failure else None


def _chosen(choice: KeyChoice) -> dict[str, Any]:
    return {"choice": choice, "key_name": KEY}


def _hidden(choice: KeyChoice) -> dict[str, str]:
    return {KEY: choice.chosen["id"]} if choice.chosen else {}


def _next(choice: KeyChoice, name: str, page: dict[str, Any]) -> str | None:
    return choice.link("", **{name: page["last_id"]}) if page["has_more"] else None


PAGES = (
    Page(
        "batches",
        "Batches and files",
        show,
        group="Build",
        rank=5,
        icon="batches",
        actions={"delete": Action(delete, "The file was deleted.", confirm_delete)},
    ),
    Page(
        "batches/new",
        "New batch",
        show_new,
        actions={"create": Action(create, "The batch has started.")},
    ),
    Page(
        "batches/new-file",
        "New file",
        show_new_file,
        actions={"upload": Action(upload, "The file was uploaded.")},
    ),
    Page(
        "batches/{batch_id}",
        "Batch",
        show_batch,
        actions={"cancel": Action(cancel, "The batch is being cancelled.", confirm_cancel)},
    ),
    Page("batches/files/{file_id}", "File", show_content),
)
