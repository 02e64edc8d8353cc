"""Deletion of a file by its owner."""

from __future__ import annotations

from fairlead.errors import Conflict
from fairlead.gateway.files.contents import contents_of
from fairlead.gateway.files.table import delete_file
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services


async def remove_file(services: Services, file_id: str, owner: str) -> None:
    """Deletes the file and its content. `NotFound`; `Conflict` while a batch reads it."""

    def delete_row(con: Connection) -> None:
        reading = con.execute(
            "SELECT id FROM batches WHERE input_file_id = ? AND owner = ? AND ended_at_ms IS NULL LIMIT 1",
            [file_id, owner],
        ).fetchone()
        if reading is not None:
            raise Conflict(
                f"The batch {reading[0]} reads this file: cancel it, or wait for its end."
            )
        delete_file(con, file_id, owner, now_ms())

    await services.state.database.write(delete_row)
    await contents_of(services).remove(file_id)
