"""`/v1beta/files/{id}:download`: what jobs left, as Google's clients ask for it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from fairlead.gateway.files.router import content_of
from fairlead.gateway.owner import OwnerDep
from fairlead.store.services import ServicesDep


async def download(file_id: str, services: ServicesDep, owner: OwnerDep) -> Response:
    """The answers of a batch."""
    return await content_of(services, file_id, owner)


router = APIRouter(tags=["files"])
for _version in ("v1", "v1beta"):
    router.add_api_route(
        f"/{_version}/files/{{file_id}}:download",
        download,
        methods=["GET"],
        name=f"{_version}_download",
        operation_id=f"{_version}_download",
        summary="What a job left, as bytes",
    )
