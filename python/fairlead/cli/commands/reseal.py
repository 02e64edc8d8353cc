"""`fairlead reseal`: stored secrets from the old key to the present one, while the instance runs."""

from __future__ import annotations

import sys

from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json


def reseal(data_dir: DataDir = DATA_DIR, url: Url = None, as_json: Json = False) -> None:
    """Encrypt every stored secret with the current key. The old key is not needed afterwards.

    First start every node with the new key, and with the old one as FAIRLEAD_OTHER_SECRET_KEY. If the command is
    interrupted, run it again: it resumes.
    """
    from fairlead.cli.instance import Instance

    resealed = 0
    with Instance(url, data_dir) as instance:
        while True:
            step = instance.post("/api/settings/reseal")
            resealed += step["resealed"]
            if not step["left"]:
                break
            print(f"{resealed} secrets, {step['left']} are left", file=sys.stderr)
    if as_json:
        show_json({"resealed": resealed, "left": 0})
        return
    print_message(
        f"{resealed} secrets were sealed with the present key; none is left with another."
    )
    print_message(
        "Start every node without FAIRLEAD_OTHER_SECRET_KEY, and keep the old key for backups made before."
    )
