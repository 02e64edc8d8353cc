"""`POST /api/settings/reseal`: a step of exchanging the key of stored secrets."""

from __future__ import annotations

import json

from fastapi import APIRouter

from fairlead.errors import Conflict
from fairlead.store.peers import NodeRow
from fairlead.store.reseal import reseal_some
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/settings/reseal", tags=["settings"])


class ResealView(Wire):
    """The number of secrets that were sealed again, and of those still sealed with the other key."""

    resealed: int
    left: int


@router.post("", summary="Seal some of the stored secrets with the present key")
async def reseal(services: ServicesDep) -> ResealView:
    """At most 200 of those that are sealed with `FAIRLEAD_OTHER_SECRET_KEY`; ask until `left` is 0. Answered 409 while
    a live node seals with another key: its relays could not open what is sealed here.
    """
    sealer = services.state.sealer
    if services.peers is not None:
        behind = [
            row.host for row in await services.peers.live() if _key_of(row) != sealer.key_name
        ]
        if behind:
            raise Conflict(
                f"The node on {behind[0]} seals with another key: start every node with the new key first, "
                "and the old one as FAIRLEAD_OTHER_SECRET_KEY."
            )
    done = await services.state.commit(lambda con: reseal_some(con, sealer))
    return ResealView.model_construct(resealed=done.resealed, left=done.left)


def _key_of(row: NodeRow) -> object:
    return None if row.report is None else json.loads(row.report).get("sealKey")
